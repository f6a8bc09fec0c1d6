//! A test that needs a process of its own, for its environment or its memory.

use std::process::Command;

/// Runs an ignored test of this binary in a child with these variables; gives what it printed.
pub(crate) fn run(test: &str, variables: &[(&str, &str)]) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    let names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUEST_METHOD"];
    for name in names {
        child.env_remove(name).env_remove(name.to_lowercase());
    }
    let output = child.envs(variables.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{test}:\n{text}\n{errors}");
    text
}
