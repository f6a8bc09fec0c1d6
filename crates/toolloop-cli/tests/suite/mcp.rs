use serde_json::{Value, json};
use toolloop_fake::{Call, FakeServer, Reply, Script};

use crate::support::{Project, Terminal, is_alive, pid_in, wait_for_end};

/// A server in the shell. It says that `look` changes nothing; `ask` asks a person, and
/// `waver` takes its question back.
const SERVER: &str = r#"
echo $$ > pid
sleep 300 & echo $! > grandchild
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*)
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"shell","version":"1"}}}' ;;
    *tools/list*)
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"look","description":"Looks around","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"ask","inputSchema":{"type":"object"}},{"name":"waver","inputSchema":{"type":"object"}}]}}' ;;
    *'"name":"ask"'*)
      asking=$id
      echo '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Which seat?","requestedSchema":{"type":"object","properties":{"seat":{"type":"string"}},"required":["seat"]}}}' ;;
    *'"name":"waver"'*)
      echo '{"jsonrpc":"2.0","id":"w","method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}}'
      sleep 1
      echo '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"w"}}'
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"never mind"}]}}' ;;
    *tools/call*)
      echo called >> calls
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"a lamp"}]}}' ;;
    *'"id":"q"'*)
      answer=$(printf '%s' "$line" | sed 's/"/\\"/g')
      echo '{"jsonrpc":"2.0","id":'$asking',"result":{"content":[{"type":"text","text":"'"$answer"'"}]}}' ;;
  esac
done
"#;

const SERVED: [&str; 3] = ["shell__ask", "shell__look", "shell__waver"];

fn project() -> Project {
    let project = Project::new();
    project.write("server.sh", SERVER);
    let shell = json!({"command": "sh", "args": ["server.sh"]});
    project.write(".mcp.json", &json!({"mcpServers": {"shell": shell}}).to_string());
    project
}

/// A model that calls this tool of the server and then answers.
fn calls(tool: &str) -> FakeServer {
    let call = Call::new(format!("shell__{tool}"), json!({}));
    FakeServer::start(Script::new([Reply::calls([call]), Reply::text("Done.")]))
}

fn tools_in(server: &FakeServer) -> Vec<String> {
    let body = &server.requests()[0].body;
    let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
    body["tools"].as_array().unwrap().iter().map(name).collect()
}

/// What the model was told of its call.
fn told(server: &FakeServer) -> String {
    let messages = &server.requests()[1].body["messages"];
    messages.as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned()
}

fn terminal(project: &Project, server: &FakeServer) -> Terminal {
    let url = server.base_url();
    Terminal::open(project, &["run", "x", "--base-url", &url, "--model", "m"], &[])
}

#[test]
fn servers_that_nobody_agreed_to_are_not_started() {
    let project = project();
    let server = FakeServer::start(Script::new([Reply::text("Hello."), Reply::text("Hello.")]));
    let ran = project.run_at(&server, &["x", "--yes"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello.\n"));
    assert_eq!(
        ran.stderr,
        "the MCP servers of this folder were not started: nobody has agreed to them (shell)\n  \
         To start them: --mcp\n"
    );
    assert!(!tools_in(&server).iter().any(|name| name.contains("shell")));
    let ran = project.run_at(&server, &["x", "--no-mcp"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(!project.folder().join("pid").exists());
}

#[test]
fn a_flag_starts_them_and_nothing_of_them_outlives_the_run() {
    let project = project();
    let server = calls("look");
    let ran = project.run_at(&server, &["x", "--mcp", "--yes=shell__look"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "Done.\n", ""));
    assert_eq!(tools_in(&server)[tools_in(&server).len() - 3..], SERVED);
    assert_eq!(told(&server), "a lamp");
    for file in ["pid", "grandchild"] {
        assert!(!is_alive(&pid_in(&project.folder().join(file))), "{file}");
    }
}

#[test]
fn a_servers_word_that_nothing_changes_is_no_reason_not_to_ask() {
    let project = project();
    let ran = project.run_at(&calls("look"), &["x", "--mcp"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(!project.folder().join("calls").exists());
}

#[test]
fn a_dead_server_is_named_and_the_run_goes_on() {
    let project = project();
    let dead = json!({"command": "sh", "args": ["-c", "echo 'npx: not found' >&2; exit 127"]});
    project.write(".mcp.json", &json!({"mcpServers": {"files": dead, "odd": {}}}).to_string());
    let server = FakeServer::start(Script::new([Reply::text("Hello."), Reply::text("Hello.")]));
    let ran = project.run_at(&server, &["x", "--mcp"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello.\n"));
    assert_eq!(
        ran.stderr,
        "error in .mcp.json: server \"odd\" has neither \"command\" nor \"url\". Add one. The run \
         goes on without its tools.\n\
         error in .mcp.json: server \"files\" ended at once (exit 127: npx: not found). The run \
         goes on without its tools.\n"
    );
    let lines = project.run_at(&server, &["x", "--mcp", "--json"]).json();
    let warnings = lines.iter().filter(|line| line["type"] == "warning");
    assert_eq!(warnings.count(), 2);
}

#[test]
fn a_person_is_shown_the_programs_and_asked_until_they_agree_for_good() {
    let project = project();
    let model = calls("look");
    let mut first = terminal(&project, &model);
    first.wait_for("y once · a always, while the file stays as it is");
    assert!(first.text().contains("│ shell: sh server.sh"), "{}", first.text());
    assert!(!project.folder().join("pid").exists());
    first.type_keys("a");
    first.wait_for("y once · a always shell__look");
    first.type_keys("y");
    assert_eq!(first.end(), 0);

    let model = calls("look");
    let mut again = terminal(&project, &model);
    again.wait_for("y once · a always shell__look");
    assert!(!again.text().contains("while the file stays"));
    again.type_keys("y");
    assert_eq!(again.end(), 0);

    let other = json!({"command": "sh", "args": ["server.sh", "other"]});
    project.write(".mcp.json", &json!({"mcpServers": {"shell": other}}).to_string());
    std::fs::remove_file(project.folder().join("pid")).unwrap();
    let model = FakeServer::start(Script::new([Reply::text("Hello.")]));
    let mut changed = terminal(&project, &model);
    changed.wait_for("while the file stays");
    changed.type_keys("n");
    assert_eq!(changed.end(), 0);
    assert!(!project.folder().join("pid").exists());
}

#[test]
fn a_person_answers_what_a_server_wants_to_know() {
    let project = project();
    let server = calls("ask");
    let url = server.base_url();
    let arguments = ["run", "x", "--mcp", "--yes", "--base-url", &url, "--model", "m"];
    let mut terminal = Terminal::open(&project, &arguments, &[]);
    terminal.wait_for("shell asks: Which seat?");
    terminal.wait_for("y answer · n no");
    terminal.type_keys("y");
    terminal.wait_for("seat:");
    terminal.type_keys("7a\r");
    assert_eq!(terminal.end(), 0);
    let told: Value = serde_json::from_str(&told(&server)).unwrap();
    assert_eq!(told["result"], json!({"action": "accept", "content": {"seat": "7a"}}));
}

#[test]
fn a_question_that_is_taken_back_goes_away() {
    let project = project();
    let server = calls("waver");
    let url = server.base_url();
    let arguments = ["run", "x", "--mcp", "--yes", "--base-url", &url, "--model", "m"];
    let mut terminal = Terminal::open(&project, &arguments, &[]);
    terminal.wait_for("shell asks: Sure?");
    assert_eq!(terminal.end(), 0);
    assert_eq!(told(&server), "never mind");
    assert!(terminal.is_as_a_shell_wants_it());
}

#[test]
fn a_slow_start_is_named_and_ctrl_c_ends_it() {
    let project = project();
    project.write("server.sh", "echo $$ > pid; sleep 300 & echo $! > grandchild; wait");
    let server = FakeServer::start(Script::new([Reply::text("Hello.")]));
    let url = server.base_url();
    let arguments = ["run", "x", "--mcp", "--base-url", &url, "--model", "m"];
    let mut terminal = Terminal::open(&project, &arguments, &[]);
    terminal.wait_for("starting shell 1 s");
    terminal.type_keys("\x03");
    assert_eq!(terminal.end(), 130);
    for file in ["pid", "grandchild"] {
        let pid = pid_in(&project.folder().join(file));
        wait_for_end(&pid);
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn ctrl_c_ends_the_servers_within_a_second() {
    let project = project();
    let server = calls("ask");
    let url = server.base_url();
    let arguments = ["run", "x", "--mcp", "--yes", "--base-url", &url, "--model", "m"];
    let mut terminal = Terminal::open(&project, &arguments, &[]);
    terminal.wait_for("y answer · n no");
    terminal.type_keys("\x03");
    let grandchild = pid_in(&project.folder().join("grandchild"));
    let pressed = std::time::Instant::now();
    wait_for_end(&grandchild);
    assert!(pressed.elapsed().as_millis() < 1500, "{:?}", pressed.elapsed());
    assert_eq!(terminal.end(), 130);
}

#[test]
fn list_shows_servers_and_tools_once_they_are_agreed_to() {
    let project = project();
    let asked = project.run(&["mcp", "list"]);
    assert_eq!(asked.stdout, "shell   sh server.sh\n  not started\n");
    assert!(asked.stderr.contains("To start them: --yes"), "{}", asked.stderr);
    assert_eq!(asked.code, Some(5));
    assert!(!project.folder().join("pid").exists());

    let ran = project.run(&["mcp", "list", "--yes"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        ran.stdout,
        "shell   sh server.sh   shell 1\n  ask\n  look   Looks around\n  waver\n"
    );

    std::fs::remove_file(project.folder().join(".mcp.json")).unwrap();
    let ran = project.run(&["mcp", "list"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.starts_with("There is no .mcp.json here"), "{}", ran.stdout);
}

#[test]
fn call_prints_the_result_and_helps_with_names() {
    let project = project();
    let ran = project.run(&["mcp", "call", "shell", "look", "{}", "--yes"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "a lamp\n", ""));
    let faults = [
        (vec!["shel", "look", "--yes"], 2, "there is no server shel\n  Did you mean shell?"),
        (vec!["shell", "loko", "--yes"], 2, "there is no tool loko\n  Did you mean look?"),
        (vec!["shell", "look", "[]", "--yes"], 2, "the arguments are no JSON object"),
    ];
    for (arguments, code, said) in faults {
        let mut all = vec!["mcp", "call"];
        all.extend(arguments);
        let ran = project.run(&all);
        assert_eq!(ran.code, Some(code));
        assert_eq!(ran.stderr, format!("error: {said}\n"));
    }
    let refused = project.run(&["mcp", "call", "shell", "look"]);
    assert_eq!(refused.code, Some(5));
    assert!(refused.stderr.contains("nobody has agreed to them (shell)"), "{}", refused.stderr);
}
