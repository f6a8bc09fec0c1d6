//! [`Record`]: the stored form of a run. [`replay`] makes the run again from its records.
//!
//! A journal is the run's start and then every input it took, in order: whole replies, results
//! and decisions, never deltas and never the transcript again. It therefore grows with what is
//! new. The start carries a format version; every released version stays readable.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::params::ChatParams;
use crate::run::{ApiMisuse, Input, Output, Run, RunConfig};

/// The version of the stored form that this crate writes.
pub const FORMAT_VERSION: u32 = 1;

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
// Records are written and read one at a time.
#[allow(clippy::large_enum_variant)]
pub enum Record {
    /// The first: how the run began.
    Start {
        /// [`FORMAT_VERSION`] of the writer.
        version: u32,
        /// What decides.
        config: RunConfig,
        /// The first request; headers are never stored.
        params: ChatParams,
    },
    /// What the run was told.
    Input(Input),
}

impl Record {
    /// The first record of a run.
    pub fn start(config: RunConfig, params: ChatParams) -> Self {
        Self::Start { version: FORMAT_VERSION, config, params }
    }
}

/// Why a journal cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The journal does not begin with a start.
    #[error("the journal does not begin with the start of a run")]
    NoStart,
    /// There is a second start.
    #[error("record {at} starts the run a second time")]
    SecondStart {
        /// Which record, from 0.
        at: usize,
    },
    /// It was written by a later version.
    #[error(
        "the stored run has format {found}, this version reads up to {FORMAT_VERSION}: update toolloop"
    )]
    Version {
        /// The journal's format.
        found: u32,
    },
    /// A record does not fit those before it.
    #[error("record {at} does not fit those before it: {misuse}")]
    Misuse {
        /// Which record, from 0.
        at: usize,
        /// What does not fit.
        misuse: ApiMisuse,
    },
}

/// Makes a run again from its records, in the state in which it was left.
///
/// Effects whose outcome is missing are asked for again by the run's next outputs; a driver that
/// must not repeat one looks at [`Run::outstanding`] first.
///
/// # Errors
/// When the records are not those of one run.
pub fn replay(records: impl IntoIterator<Item = Record>) -> Result<Run, ReplayError> {
    let mut records = records.into_iter();
    let Some(Record::Start { version, config, params }) = records.next() else {
        return Err(ReplayError::NoStart);
    };
    if version > FORMAT_VERSION {
        return Err(ReplayError::Version { found: version });
    }
    let mut run = Run::new(config, params);
    drain(&mut run);
    for (at, record) in (1..).zip(records) {
        let Record::Input(input) = record else { return Err(ReplayError::SecondStart { at }) };
        run.handle_input(input).map_err(|misuse| ReplayError::Misuse { at, misuse })?;
        drain(&mut run);
    }
    run.repeat_outstanding();
    Ok(run)
}

/// Reads the version of a stored run, and refuses a later one.
pub(crate) fn supported_version<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<u32, D::Error> {
    let found = u32::deserialize(deserializer)?;
    if found > FORMAT_VERSION {
        return Err(serde::de::Error::custom(ReplayError::Version { found }));
    }
    Ok(found)
}

/// Stores a map so that equal ones read the same.
pub(crate) fn in_key_order<S: Serializer>(
    map: &HashMap<String, Value>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(map.iter().collect::<BTreeMap<_, _>>())
}

/// Takes the outputs that were carried out when the records were made.
fn drain(run: &mut Run) {
    while !matches!(run.poll_output(), Output::Wait { .. } | Output::Yielded | Output::Finished) {}
}
