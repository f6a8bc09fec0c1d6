//! Servers as a loop calls them: scripted ones over pipes in virtual time, and real programs.

mod suite {
    /// What a call sends, and what its result becomes.
    mod calls;
    /// A server that dies, babbles or floods fails its calls clearly and is started again.
    mod death;
    /// Servers of the ecosystem, where the environment says how to start them.
    mod ecosystem;
    /// Questions of a server reach a person, whose time is not the call's.
    mod elicitation;
    /// Streamable HTTP: headers, refusals, redirects, lost sessions.
    mod http;
    /// Lists of tools: duplicates, wrong entries, changes, schemas that point elsewhere.
    mod lists;
    /// Servers that speak the newest protocol alone, without a greeting.
    mod newest;
    /// Programs: how their end is told, what they inherit, and that nothing outlives them.
    mod programs;
    mod support;
    /// Progress in order, cancellation, time limits.
    mod under_way;
}
