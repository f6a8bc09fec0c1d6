//! The tools as the loop calls them, on real folders and processes.

mod suite {
    /// Commands: output, limits, and processes that all end.
    mod bash;
    /// Commands that try to get out, to stay, or to take the machine with them.
    mod bash_escape;
    /// Commands in the background.
    mod bash_jobs;
    /// Exact-text edits: all or nothing, and none lost.
    mod edit_file;
    /// What leads out of the root, waits for ever or has no end: refused or bounded.
    mod escapes;
    /// Texts of the Internet, and nothing of this machine.
    mod fetch_url;
    /// Files by a pattern for their paths.
    mod glob;
    /// Lines by a regular expression.
    mod grep;
    /// What a folder holds, in a stable order and bounded.
    mod list_dir;
    /// What a call would change, shown before it does.
    mod preview;
    /// Text whole or in part, and nothing from outside the root.
    mod read_file;
    /// Long results, kept under a handle and read on by bytes.
    mod results;
    mod support;
    /// Whole files, in one step.
    mod write_file;
}
