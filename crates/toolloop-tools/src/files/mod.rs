//! Files under a [`Root`]: list, read, write and edit them, and show what a change would be.

mod edit_file;
mod edits;
mod list_dir;
mod place;
mod preview;
mod read_file;
mod root;
mod write_file;

pub use edit_file::EditFile;
pub use list_dir::ListDir;
pub use preview::preview;
pub use read_file::ReadFile;
pub use root::Root;
pub(crate) use root::non_blocking;
pub use write_file::WriteFile;
