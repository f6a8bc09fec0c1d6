//! Pages of the Internet, and nothing of this machine or its network.

mod addresses;
mod client;
mod fetch_url;
mod html;

pub use fetch_url::FetchUrl;
