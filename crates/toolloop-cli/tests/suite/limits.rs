use std::time::{Duration, Instant};

use serde_json::json;
use toolloop_fake::{Call, FakeServer, Fault, Reply, Script};

use crate::support::Project;

#[test]
fn the_limit_of_iterations_ends_with_an_answer_and_names_the_flag() {
    let project = Project::new();
    let look = || Reply::calls([Call::new("list_dir", json!({"path": "."}))]);
    let server = FakeServer::start(Script::new([look(), look(), Reply::text("Two, so far.")]));
    let ran = project.run_at(&server, &["hi", "--max-iterations", "2"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(4), "Two, so far.\n"), "{ran:?}");
    assert_eq!(
        ran.stderr,
        "limit: 2 model calls made, as many as allowed; the answer is what was found by then\n  \
         The limit came from --max-iterations.\n  For more: --max-iterations 4\n"
    );
}

#[test]
fn the_time_ends_a_silent_model_and_keeps_what_came() {
    let project = Project::new();
    let reply =
        Reply::text("one two three four").fault(Fault::StallAtEvent { event: 3, ping_every: None });
    let server = FakeServer::start(Script::new([reply]));
    let started = Instant::now();
    let ran = project.run_at(&server, &["hi", "--timeout", "400ms"]);
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.stdout.starts_with("one"), "{ran:?}");
    assert_eq!(
        ran.stderr,
        "limit: the time of 400ms is over\n  The limit came from --timeout.\n  \
         For more: --timeout 800ms\n"
    );
}

#[test]
fn an_answer_that_the_output_limit_cut_is_no_success() {
    let project = Project::new();
    let reply = Reply::text("half an ans").finish_reason("length");
    let server = FakeServer::start(Script::new([reply]));
    let ran = project.run_at(&server, &["hi"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(4), "half an ans\n"), "{ran:?}");
    assert!(ran.stderr.starts_with("limit: the answer was cut"), "{ran:?}");
}

#[test]
fn a_model_that_goes_in_circles_is_warned_and_then_stopped() {
    let project = Project::new();
    let look = || Reply::calls([Call::new("list_dir", json!({"path": "."}))]);
    let server = FakeServer::start(Script::new(std::iter::repeat_with(look).take(9)));
    let ran = project.run_at(&server, &["hi"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let told = "limit: the model went in circles: list_dir, 6 times without progress, though it was \
                warned\n  Say the task in other words, or choose another model: --model.\n";
    assert!(ran.stderr.ends_with(told), "{ran:?}");
    assert_eq!(server.requests().len(), 6);
    let last = server.requests().pop().unwrap().body.to_string();
    assert_eq!(last.matches("[Loop warning: list_dir was called").count(), 2, "{last}");
}

/// What changes each time is progress: a log that grows, a job on its way.
#[test]
fn a_model_that_polls_is_let_be() {
    let project = Project::new();
    let poll = || Reply::calls([Call::new("bash", json!({"command": "echo . >> log; cat log"}))]);
    let replies = std::iter::repeat_with(poll).take(12).chain([Reply::text("It is done.")]);
    let server = FakeServer::start(Script::new(replies));
    let ran = project.run_at(&server, &["hi", "--yes"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "It is done.\n"), "{ran:?}");
    let last = server.requests().pop().unwrap().body.to_string();
    assert!(!last.contains("Loop warning"), "{last}");
}
