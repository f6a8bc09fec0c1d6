//! What a run tells besides its answer, in a line each.

use toolloop_core::{CompactionMethod, LoopEvent, ReducedSchema};

use super::text::clean;
use crate::providers::KEY_VARIABLES;

/// Says that a script answers.
pub(super) fn demo() -> String {
    format!(
        "No key and no local model found: using the built-in demo model (scripted; the tools are \
         real).\nFor a real one: export {KEY_VARIABLES}, or start Ollama.   toolloop help models"
    )
}

/// What is worth a line of what happened to the run itself.
pub(super) fn of_run(event: &LoopEvent) -> Option<String> {
    Some(match event {
        LoopEvent::AttemptDiscarded { .. } => "the reply broke off; it begins anew".to_owned(),
        LoopEvent::SchemasReduced { schemas } => reduced(schemas),
        LoopEvent::Compacted { method, tokens_before, tokens_after, .. } => {
            let how = match method {
                CompactionMethod::Summary => "summed up",
                CompactionMethod::Truncation => "left out",
            };
            format!(
                "the conversation got long, its older part is {how}: ~{tokens_before} to \
                 ~{tokens_after} tokens"
            )
        }
        LoopEvent::LoopDetected { tool_name, consecutive_count, .. } => {
            format!(
                "the model goes in circles: {tool_name}, {consecutive_count} times without progress"
            )
        }
        _ => return None,
    })
}

/// Of which schemas the API was told less than they say, in one line that fits most terminals.
fn reduced(schemas: &[ReducedSchema]) -> String {
    let name = |schema: &ReducedSchema| match &schema.tool {
        Some(tool) => clean(tool).into_owned(),
        None => "the answer".to_owned(),
    };
    let mut names: Vec<_> = schemas.iter().take(MOST_NAMES).map(name).collect();
    if schemas.len() > MOST_NAMES {
        names.push(format!("{} more", schemas.len() - MOST_NAMES));
    }
    format!("checked here, for the API takes only a part of their schemas: {}", names.join(", "))
}

const MOST_NAMES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reduced_schemas_fit_into_a_line() {
        let schema = |tool: Option<&str>| ReducedSchema {
            tool: tool.map(str::to_owned),
            dropped: vec!["a rule".to_owned()],
        };
        let said = "checked here, for the API takes only a part of their schemas: ";
        assert_eq!(
            reduced(&[schema(Some("wait")), schema(None)]),
            format!("{said}wait, the answer")
        );
        let many = ["a", "b", "c", "d", "e"].map(|tool| schema(Some(tool)));
        assert_eq!(reduced(&many), format!("{said}a, b, c, 2 more"));
    }
}
