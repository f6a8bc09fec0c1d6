//! One binary for all integration tests; each suite says in its first line what it is about.

mod support;

mod suite {
    mod aicore;
    mod anthropic;
    mod anthropic_fixtures;
    mod anthropic_recorded;
    mod anthropic_requests;
    mod connection;
    mod corpus;
    mod cuts;
    mod dialects;
    mod dialogues;
    mod error_bodies;
    mod every_provider;
    mod failures;
    mod fixtures;
    mod gemini;
    mod gemini_corpus;
    mod gemini_requests;
    mod large_bodies;
    mod odd_values;
    mod ollama;
    mod proxies;
    mod requests;
    mod responses;
    mod responses_corpus;
    mod responses_histories;
    mod retries;
    mod schemas;
    mod servers;
    mod shortcuts;
    mod silence;
    mod tls;
}
