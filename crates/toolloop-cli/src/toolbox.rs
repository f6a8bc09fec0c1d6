//! The tools of a run by name: the built-in ones, and whether those that are named are there.

use toolloop::tool::ToolRegistry;
use toolloop::tools::Builtin;

use crate::nearest::nearest;
use crate::origin::Origin;
use crate::report::Report;
use crate::sandbox;
use crate::settings::Settings;

/// The built-in tools.
pub(crate) fn built_in(builtin: Builtin, settings: &Settings) -> ToolRegistry {
    let mut registry = ToolRegistry::new();
    registry.register_builtin(&match sandbox::sandbox(settings) {
        Some(sandbox) => builtin.with_sandbox(sandbox),
        None => builtin.without_sandbox(),
    });
    registry
}

/// Whether a tool of this name is a server's: those are known only once servers have started.
pub(crate) fn is_of_server(name: &str) -> bool {
    name.contains("__")
}

/// A tool that is named must be there.
pub(crate) fn check_tools<'a>(
    names: impl Iterator<Item = &'a str>,
    tools: &ToolRegistry,
    origin: &Origin,
) -> Result<(), Report> {
    let mut known: Vec<String> = tools.definitions().into_iter().map(|tool| tool.name).collect();
    if !tools.contains(TASK) {
        known.push(TASK.to_owned());
    }
    for name in names {
        if known.iter().any(|tool| tool == name) {
            continue;
        }
        let report = Report::usage(format!("there is no tool {name}"))
            .advice(format!("It was named by {origin}."));
        let near = nearest(name, known.iter().map(String::as_str), 1);
        return Err(match near.first() {
            Some(near) => report.advice(format!("Did you mean {near}?")),
            None => report.advice(format!("Tools are: {}.", known.join(", "))),
        });
    }
    Ok(())
}

/// The sub-agent; it needs the model, which is found when the names of tools have been checked.
pub(crate) const TASK: &str = "task";
/// What it works with: enough to find something out, and nothing to change.
pub(crate) const TOOLS_OF_A_TASK: [&str; 5] =
    ["list_dir", "glob", "grep", "read_file", "read_result"];
