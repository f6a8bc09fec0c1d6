//! The tool loop in virtual time, one file for each behaviour.

mod suite {
    pub(crate) mod support;

    /// How often the model is asked, with which tools, and how its calls are run.
    mod iterations;

    /// Which calls are asked about, when, and what comes of it.
    mod approval;

    /// The caller's own condition to stop.
    mod stopping;

    /// A model that repeats itself.
    mod repetition;

    /// The wall clock of a run.
    mod clock;

    /// Cancelled runs and dropped streams.
    mod cancel;

    /// Tokens of replies that never came to their end.
    mod usage;

    /// Messages sent while a loop runs go in before the next model call.
    mod inbox;

    /// One model after the other until one answers.
    mod fallback;

    /// Claude, at Anthropic and behind SAP AI Core, against a server that is as strict.
    mod anthropic;

    /// Every API against a server that is not ours.
    mod foreign_server;

    /// What a provider takes otherwise than it is said here: schemas, names, sealed thoughts.
    mod translation;

    /// Calls as text, and calls that leaked into it.
    mod dialects;

    /// What a result passes on its way to the model.
    mod pipeline;

    /// What was encoded before is sent again as if it were encoded anew.
    mod encoding;

    /// Each fault at every event of a reply, through every API.
    mod broken_replies;

    /// A run whose reply breaks or stalls goes on with what it left.
    mod broken_runs;

    /// No request that a run can make is refused.
    mod never_refused;

    /// What later requests show of old results.
    mod masking;

    /// Old tool turns leave the request, not the conversation.
    mod pruning;

    /// A conversation that is too long for its request.
    mod compaction;

    /// Messages under a budget of tokens.
    mod context;

    /// Code around the calls of models and tools.
    mod intercept;

    /// Answers as values of a type.
    mod structured;

    /// Panics in callbacks and in tools.
    mod panics;

    /// Replies as models and servers really send them.
    mod replies;

    /// A model that reads long results for the other.
    mod extract;

    /// The built-in tools in a loop, and long results behind a handle.
    #[cfg(feature = "tools")]
    mod builtin;

    /// Loops in the tools of loops.
    mod nesting;

    /// A sub-agent as a tool.
    mod task;

    /// The conversation a run leaves, wherever it ends.
    mod validity;

    /// Tools that finish in any order.
    mod orders;

    /// What a follower of a run sees, and when.
    mod events;

    /// Tools, their schemas, retries and time limits.
    mod registry;

    /// Runs taken forward turn by turn.
    mod handle;

    /// Loops whose caller runs the tools.
    mod chat_loop;

    /// Chat loops that run their tools, told by callbacks.
    mod chat_loop_tools;

    /// A model that goes in circles.
    mod circles;

    /// What programs rely on at compile time, and the mock they test with.
    mod surface;
}
