//! The tools as the loop calls them, on real folders and processes.

mod suite {
    mod bash;
    mod list_dir;
    mod read_file;
    mod support;
}
