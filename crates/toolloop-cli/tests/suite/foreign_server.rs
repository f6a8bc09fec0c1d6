//! `.ci/run` starts a server and names it in `TOOLLOOP_AIMOCK_URL`; its script is in
//! `crates/toolloop/tests/aimock`.

use crate::support::Project;

#[test]
fn the_main_job_runs_against_a_server_that_is_not_ours() {
    let Ok(url) = std::env::var("TOOLLOOP_AIMOCK_URL") else {
        println!("skipped: TOOLLOOP_AIMOCK_URL is not set");
        return;
    };
    let url = format!("{url}/v1");
    let project = Project::new();
    let task = "what is in this folder?";
    let ran = project.run(&["run", "--base-url", &url, "--model", "gpt-5-mini", task]);
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (Some(0), "A script, main.py, that prints the name of the system.\n", ""),
    );
}
