//! [`ReadResult`]: the tool `read_result`.

use std::io::{Read, Seek, SeekFrom};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolloop_core::{EffectClass, ToolDefinition, ToolError, ToolFuture, ToolHandler};

use crate::ResultStore;
use crate::blocking::on_thread;
use crate::output::whole_characters;

/// Reads on in a result that a [`ResultStore`] holds, by bytes: a result may be one long line.
#[derive(Debug, Clone)]
pub struct ReadResult {
    store: ResultStore,
}

impl ReadResult {
    /// Reads results of `store`, 16 KiB at once.
    pub fn new(store: ResultStore) -> Self {
        Self { store }
    }
}

impl<Ctx> ToolHandler<Ctx> for ReadResult {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::from_type::<Arguments>(
            NAME,
            "Reads the part of a long tool result that was left out of the conversation, by the \
             handle that stands in its place.",
        )
    }

    fn execute<'a>(&'a self, input: Value, _: &'a Ctx) -> ToolFuture<'a> {
        let store = self.store.clone();
        on_thread(NAME, input, move |arguments, _| read(&store, arguments))
    }

    fn effect_class(&self) -> EffectClass {
        EffectClass::ReadOnly
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The handle of the result, such as r3.
    handle: String,
    /// The byte to begin at; default 0.
    #[serde(default)]
    start: u64,
    /// How many bytes to read, at most and by default 16384.
    #[schemars(range(min = 1, max = 16384))]
    length: Option<u64>,
}

fn read(store: &ResultStore, arguments: &Arguments) -> Result<String, ToolError> {
    let Arguments { handle, start, length } = arguments;
    let explain = |error| ToolError::new(format!("The result {handle} cannot be read: {error}."));
    let Some(mut file) = store.open(handle).map_err(explain)? else {
        return Err(ToolError::new(format!(
            "There is no stored result {handle}. Handles stand in results whose middle was left \
             out; if this one did, it has been cleared away: call the tool again."
        )));
    };
    let total = file.metadata().map_err(explain)?.len();
    if *start >= total {
        return Err(ToolError::new(format!(
            "The result {handle} has only {total} bytes; start {start} is behind its end."
        )));
    }
    let length = length.unwrap_or(MAX_LENGTH).clamp(1, MAX_LENGTH);
    // A character may begin before `start` or end behind the last byte.
    let from = start.saturating_sub(3);
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from)).map_err(explain)?;
    file.take(start - from + length + 3).read_to_end(&mut bytes).map_err(explain)?;
    let skip = whole_characters(&bytes[..(start - from) as usize]);
    let end = bytes.len().min((start - from + length) as usize);
    let end = match skip + whole_characters(&bytes[skip..end]) {
        // Not even one character: give one all the same, so that reading on gets on.
        end if end == skip => bytes.len(),
        end => end,
    };
    let text = String::from_utf8_lossy(&bytes[skip..end]);
    let next = from + end as u64;
    Ok(match next < total {
        true => {
            let line_end = if text.ends_with('\n') { "" } else { "\n" };
            format!("{text}{line_end}[up to byte {next} of {total}; read on with start {next}]")
        }
        false => text.into_owned(),
    })
}

const NAME: &str = "read_result";
const MAX_LENGTH: u64 = 16 * 1024;
