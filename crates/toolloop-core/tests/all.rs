//! The run without any driver: scripted worlds in virtual time, whole transcripts, properties.

mod suite {
    /// Replies from their stream events.
    mod assembler;
    /// Models that go in circles, and models that only seem to.
    mod circles;
    /// Tokens of replies that were cut, and of tries that were given up.
    mod cut_usage;
    mod dialect;
    /// What callers put into a conversation while it runs.
    mod edits;
    /// What all histories have in common, whatever happens in them.
    mod history;
    /// Cancel, stop and timeout in every state.
    mod interruptions;
    /// Journals of every released format.
    mod journals;
    /// Drivers that break the rule.
    mod misuse;
    mod plan;
    /// Conversations that no provider would take.
    mod repair;
    /// Journals and stored runs, cut at every point.
    mod replay;
    /// Schemas of which a provider was told less than they say.
    mod schemas;
    /// What runs look like, from the first output to the last message.
    mod shapes;
    mod show;
    mod sim;
    mod world;
}
