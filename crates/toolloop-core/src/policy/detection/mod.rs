//! Detection of a model that goes in circles, as two policies over the same fingerprints:
//!
//! - [`LoopDetectionConfig`] counts equal replies in a row, whatever came of them;
//! - [`LoopDetectorConfig`] sets up the [`LoopDetector`], which looks at calls and their results:
//!   the same call again, calls in a cycle, the same error whatever the arguments, the same words
//!   with nothing new behind them.
//!
//! Both keep hashes instead of arguments and results, so that their state is small and holds
//! nothing that a tool was given.

mod config;
mod detector;
mod fingerprint;
mod found;
mod repetition;

pub use config::{DetectionAction, LoopDetectorConfig};
pub use detector::{CallEnd, LoopDetector};
pub use found::{LoopDetection, LoopKind};
pub use repetition::{LoopAction, LoopDetectionConfig};

pub(crate) use repetition::{RepeatDetector, Repetition};
