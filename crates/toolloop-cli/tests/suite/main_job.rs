use std::time::{Duration, Instant};

use serde_json::json;
use toolloop_fake::{Call, FakeServer, Reply, Script};

use crate::support::Project;

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
    assert_eq!(names, ["list_dir", "read_file", "bash"]);
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
fn the_version_is_told_at_once() {
    let project = Project::new();
    // The best of several: the machine may be busy with other tests.
    let fastest = (0..5)
        .map(|_| {
            let started = Instant::now();
            let ran = project.run(&["--version"]);
            assert_eq!(ran.stdout, concat!("toolloop ", env!("CARGO_PKG_VERSION"), "\n"));
            started.elapsed()
        })
        .min()
        .unwrap();
    assert!(fastest < Duration::from_millis(10), "{fastest:?}");
}
