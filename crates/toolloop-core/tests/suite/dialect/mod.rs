//! Calls as text: what is found in a reply, however it is cut, and what is rendered.

mod cases;
mod processing;
mod properties;
mod reading;
mod rendering;
mod splits;
