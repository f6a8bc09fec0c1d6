use serde_json::{Value, json};
use toolloop_fake::{Call, FakeServer, Reply, Script};

use crate::support::{Project, Ran};

/// A provider, the variable of its address, and what stands behind the address of the server.
const APIS: [(&str, &str, &str); 6] = [
    ("openai/m", "OPENAI_BASE_URL", "/v1"),
    ("responses/m", "OPENAI_BASE_URL", "/v1"),
    ("anthropic/m", "ANTHROPIC_BASE_URL", ""),
    ("gemini/m", "GEMINI_BASE_URL", "/v1beta"),
    ("ollama/m", "OLLAMA_HOST", ""),
    ("mistral/m", "MISTRAL_BASE_URL", "/v1"),
];

fn run(project: &Project, api: (&str, &str, &str), server: &FakeServer, task: &str) -> Ran {
    let (model, variable, path) = api;
    let mut command = project.command(&["run", "--model", model, task]);
    command.env(variable, format!("http://{}{path}", server.address()));
    let key = model.split('/').next().unwrap().to_uppercase().replace("RESPONSES", "OPENAI");
    command.env(format!("{key}_API_KEY"), "key-of-the-test-1234");
    Ran::of(command.output().unwrap())
}

#[test]
fn every_api_runs_the_tools_and_answers() {
    let project = Project::new();
    for api in APIS {
        let server = FakeServer::start(Script::new([
            Reply::text("I'll look.")
                .call(Call::new("list_dir", json!({"path": "."})))
                .call(Call::new("read_file", json!({"path": "main.py"}))),
            Reply::text("It prints **os.name**."),
        ]));
        let ran = run(&project, api, &server, "what is here?");
        let said = (ran.code, ran.stdout.as_str());
        assert_eq!(said, (Some(0), "It prints **os.name**.\n"), "{}: {ran:?}", api.0);
        let results = server.requests().pop().unwrap().body.to_string();
        assert!(results.contains("README.md") && results.contains("os.name"), "{results}");
    }
}

#[test]
fn every_api_takes_the_schemas_of_the_built_in_tools_whole() {
    let project = Project::new();
    for (model, variable, path) in APIS {
        let server = FakeServer::start(Script::new([Reply::text("Hi.")]));
        let mut command = project.command(&["run", "--json", "--model", model, "x"]);
        command.env(variable, format!("http://{}{path}", server.address()));
        for key in ["OPENAI", "ANTHROPIC", "GEMINI", "MISTRAL"] {
            command.env(format!("{key}_API_KEY"), "key-of-the-test-1234");
        }
        let ran = Ran::of(command.output().unwrap());
        assert_eq!(ran.code, Some(0), "{model}: {ran:?}");
        let reduced: Vec<_> =
            ran.json().into_iter().filter(|line| line["type"] == "schemas_reduced").collect();
        assert_eq!(reduced, Vec::<Value>::new(), "{model}");
    }
}

#[test]
fn every_api_tells_a_refused_key_from_other_errors() {
    let project = Project::new();
    for api in APIS {
        let script = Script::new([]).require_key("another-key-of-5678");
        let server = FakeServer::start(script);
        let ran = run(&project, api, &server, "x");
        assert_eq!((ran.code, server.requests().len()), (Some(3), 1), "{}: {ran:?}", api.0);
        let told = ran.stderr.contains("refused the key") && ran.stderr.contains("…1234");
        assert!(told && !ran.stderr.contains("key-of-the-test"), "{}: {ran:?}", api.0);
    }
}

#[test]
fn a_missing_ollama_model_comes_with_its_cure() {
    let project = Project::new();
    let server = FakeServer::start(Script::new([]).models(["qwen3:4b", "llama3.2"]));
    let mut command = project.command(&["run", "--json", "--model", "ollama/qwen3:8b", "x"]);
    command.env("OLLAMA_HOST", server.address().to_string());
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let lines = ran.json();
    let error = lines.iter().find(|line| line["type"] == "error").unwrap();
    assert_eq!(
        (&error["message"], &error["cure"]),
        (
            &Value::from(
                "Ollama has no model qwen3:8b: model 'qwen3:8b' not found (get it with: ollama \
                 pull qwen3:8b)"
            ),
            &Value::from(
                "All there are: toolloop models The request's id, for the provider's support: \
                 req_fake_1 Nearest: qwen3:4b"
            )
        )
    );
}
