use std::process::Command;

use serde_json::json;
use toolloop_fake::{Call, FakeServer, Reply, Script};

use crate::support::{Project, fastest};

#[test]
fn with_nothing_set_up_the_demo_model_names_the_files() {
    let project = Project::new();
    let ran = project.run(&["run", "what is in this folder?"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for name in ["main.py", "README.md", "Lamps"] {
        assert!(ran.stdout.contains(name), "{ran:?}");
    }
    assert_eq!(
        ran.stderr,
        "No key and no local model found: using the built-in demo model (scripted; the tools are \
         real).\nFor a real one: export OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or \
         start Ollama.   toolloop help models\n"
    );
}

#[test]
fn a_server_gets_prompt_task_and_tools_and_its_answer_is_the_output() {
    let project = Project::new();
    let server = FakeServer::start(Script::new([
        Reply::text("Let me look.").call(Call::new("read_file", json!({"path": "main.py"}))),
        Reply::text("It prints **os.name**.\n"),
    ]));
    let ran = project.run_at(&server, &["what does main.py do?"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "It prints **os.name**.\n"), "{ran:?}");
    assert_eq!(ran.stderr, "");

    let requests = server.requests();
    let first = &requests[0].body["messages"];
    assert_eq!(first[1], json!({"role": "user", "content": "what does main.py do?"}));
    let system = first[0]["content"].as_str().unwrap();
    assert!(system.contains(project.folder().to_str().unwrap()), "{system}");
    let tools = requests[0].body["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| &tool["function"]["name"]).collect();
    let files = ["list_dir", "glob", "grep", "read_file", "write_file", "edit_file"];
    let others = ["bash", "bash_output", "bash_kill", "read_result", "task"];
    assert_eq!(names, [files.as_slice(), &others].concat());
    let result = requests[1].body["messages"][3]["content"].as_str().unwrap();
    assert!(result.contains("print(os.name)"), "{result}");
}

#[test]
fn flags_choose_folder_tools_and_prompt() {
    let project = Project::new();
    let server = FakeServer::start(Script::new([Reply::text("ok"), Reply::text("ok")]));
    let home = project.home();
    let dir = home.to_str().unwrap();
    project.run_at(&server, &["x", "--dir", dir, "--tools", "read_file"]);
    let ran = project.run_at(&server, &["x", "--tools", "none", "--system", "Be brief."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let requests = server.requests();
    assert!(requests[0].body["messages"][0]["content"].as_str().unwrap().contains(dir));
    assert_eq!(requests[0].body["tools"].as_array().unwrap().len(), 1);
    assert_eq!(requests[1].body["messages"][0]["content"], "Be brief.");
    assert_eq!(requests[1].body.get("tools"), None);
}

#[test]
fn a_long_result_is_read_on_by_its_handle_and_the_network_is_asked_for() {
    let project = Project::new();
    let server = FakeServer::start(Script::new([
        Reply::calls([Call::new("bash", json!({"command": "seq 20000"}))]),
        Reply::calls([Call::new("read_result", json!({"handle": "r1", "start": 50000}))]),
        Reply::text("ok"),
    ]));
    let args = ["x", "--yes=bash", "--tools", "bash,read_result,fetch_url"];
    assert_eq!(project.run_at(&server, &args).code, Some(0));
    let requests = server.requests();
    assert_eq!(requests[0].body["tools"].as_array().unwrap().len(), 3);
    let result = |request: usize, at: usize| {
        requests[request].body["messages"][at]["content"].as_str().unwrap().to_owned()
    };
    let shown = result(1, 3);
    assert!(
        shown.len() < 33 * 1024 && shown.starts_with("1\n2\n") && shown.ends_with("[exit code 0]")
    );
    assert!(shown.contains("read_result shows them: {\"handle\":\"r1\""), "{shown}");
    assert!(result(2, 5).contains("\n10300\n"), "{}", result(2, 5));
}

#[test]
fn a_sub_agent_finds_out_and_changes_nothing() {
    let project = Project::new();
    let server = FakeServer::start(Script::new([
        Reply::calls([Call::new("task", json!({"task": "What does main.py print?"}))]),
        Reply::calls([Call::new("read_file", json!({"path": "main.py"}))]),
        Reply::text("os.name"),
        Reply::text("It prints os.name."),
    ]));
    let ran = project.run_at(&server, &["what does main.py print?"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "It prints os.name.\n"), "{ran:?}");
    let requests = server.requests();
    let tools = requests[1].body["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["list_dir", "glob", "grep", "read_file", "read_result"]);
    assert_eq!(requests[3].body["messages"][3]["content"], "os.name");
}

#[test]
fn the_version_is_told_at_once() {
    let project = Project::new();
    // Beside the smallest process there is, in turns and the best of several: the machine may be
    // slow, or busy with other tests.
    let [version, shell] = fastest([
        &|| {
            let ran = project.run(&["--version"]);
            assert_eq!(ran.stdout, concat!("toolloop ", env!("CARGO_PKG_VERSION"), "\n"));
        },
        &|| assert!(Command::new("sh").args(["-c", ":"]).status().unwrap().success()),
    ]);
    assert!(version < shell * 20, "{version:?} beside {shell:?}");
}
