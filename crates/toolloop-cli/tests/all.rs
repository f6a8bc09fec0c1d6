//! The built command from outside: what a person, a pipe and a script get.

mod suite {
    /// The main job through every API.
    mod apis;
    /// Nobody at the approval, and somebody.
    mod approval;
    /// Calls as text, and one call in a message.
    mod dialects;
    /// What goes wrong, and with which code.
    mod errors;
    /// The main job with a model server that is not ours.
    mod foreign_server;
    /// Ctrl-C, a request to end, a reader that goes.
    mod interrupt;
    /// `--json`, line by line.
    mod json;
    /// A limit ends the run with an answer.
    mod limits;
    /// The main job, with the demo model and with a server.
    mod main_job;
    /// MCP servers of the folder: who agrees to them, their tools, questions and ends.
    mod mcp;
    /// `toolloop models` and `toolloop fake`.
    mod models;
    /// Standard input, and output that is no terminal.
    mod pipes;
    /// What commands may do, and who may open the sandbox.
    mod sandbox;
    /// Settings: which source wins, and what a folder may not do.
    mod settings;
    /// What a person sees.
    mod terminal;
}
mod support;
