//! Any journal, one record a line, is replayed or refused; any stored run is read or refused. What
//! comes of it has a valid conversation in every state.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolloop_core::Run;
use toolloop_core::journal::{Record, replay};
use toolloop_core::run::{Input, Output};
use toolloop_core::transcript::keeps_grammar;

fuzz_target!(|text: &str| {
    let records = text.lines().filter_map(|line| serde_json::from_str::<Record>(line).ok());
    if let Ok(run) = replay(records) {
        let stored = serde_json::to_string(&run).expect("a run can be stored");
        let read: Run = serde_json::from_str(&stored).expect("a stored run can be read");
        go_on(read);
        go_on(run);
    }
});

/// Takes the outputs, cancels, and takes those of the end.
fn go_on(mut run: Run) {
    for _ in 0..2 {
        while !matches!(run.poll_output(), Output::Wait { .. } | Output::Yielded | Output::Finished)
        {
        }
        assert!(keeps_grammar(&run.messages()));
        assert!(keeps_grammar(&run.params().messages));
        let _ = run.handle_input(Input::Cancel);
    }
}
