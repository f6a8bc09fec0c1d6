use serde_json::json;
use toolloop_fake::{Call, FakeServer, Reply, Script};

use crate::support::{Project, Ran, Terminal};

/// A model that runs this command, and a key that nobody may see.
fn ran(project: &Project, command: &str, arguments: &[&str]) -> (Ran, String) {
    let call = Call::new("bash", json!({ "command": command }));
    let server = FakeServer::start(Script::new([Reply::calls([call]), Reply::text("Done.")]));
    let url = server.base_url();
    let mut all = vec!["run", "--yes", "--base-url", &url, "--model", "gpt-test", "x"];
    all.extend(arguments);
    let mut command = project.command(&all);
    command.env("OPENAI_API_KEY", "sk-secret-0123");
    let ran = Ran::of(command.output().unwrap());
    let requests = server.requests();
    let result = requests[1].body["messages"][3]["content"].as_str().unwrap();
    (ran, result.to_owned())
}

/// Whether this machine confines files.
fn confines(project: &Project) -> bool {
    let doctor = project.run(&["doctor"]).stdout;
    assert!(doctor.contains(" sandbox    files "), "{doctor}");
    let confines = doctor.contains("files confined");
    if !confines {
        println!("skipped: {doctor}");
    }
    confines
}

#[test]
fn a_command_writes_in_the_folder_only_unless_the_sandbox_is_off() {
    let project = Project::new();
    let script = "echo in >in; echo out >../out";
    if confines(&project) {
        let (ran, result) = ran(&project, script, &[]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(result.contains("../out: Permission denied"), "{result}");
        assert!(project.folder().join("in").exists());
        assert!(!project.folder().join("../out").exists());
    }
    let (ran, result) = ran(&project, script, &["--sandbox", "off"]);
    assert_eq!(result, "[no output]\n[exit code 0]");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(project.folder().join("../out").exists());
}

#[test]
fn a_person_opens_folders_for_writing() {
    let project = Project::new();
    std::fs::create_dir(project.home().join(".cache")).unwrap();
    project.config("writable = [\"~/.cache\"]\n");
    let (_, result) = ran(&project, "echo x >~/.cache/new && echo written", &[]);
    assert_eq!(result, "written\n[exit code 0]");
}

#[test]
fn a_command_finds_no_key() {
    let project = Project::new();
    if !confines(&project) {
        return;
    }
    project.config("[openai]\napi_key = \"sk-secret-4567\"\n");
    let script = "env; cat /proc/$PPID/environ /proc/$PPID/task/*/environ \
                  ~/.config/toolloop/config.toml | tr '\\0' '\\n'; echo end";
    let (_, result) = ran(&project, script, &["--sandbox", "network"]);
    assert!(result.contains("\nend\n"), "{result}");
    assert!(!result.contains("sk-secret"), "{result}");
}

#[test]
fn the_file_of_a_folder_may_not_open_the_sandbox() {
    let project = Project::new();
    for (line, code) in
        [("sandbox = \"off\"", 2), ("writable = [\"/\"]", 2), ("sandbox = \"strict\"", 0)]
    {
        project.write("toolloop.toml", line);
        let ran = project.run(&["run", "--quiet", "x"]);
        assert_eq!(ran.code, Some(code), "{line} {ran:?}");
    }
    project.write("toolloop.toml", "sandbox = \"open\"");
    assert_eq!(
        project.run(&["run", "x"]).stderr,
        "error: in toolloop.toml, line 1: expected strict, network or off, found `open`\n"
    );
}

#[test]
fn the_header_says_what_is_open() {
    let project = Project::new();
    let home = project.home();
    let home = home.to_str().unwrap();
    let server = FakeServer::start(Script::from_fn(|_| Reply::text("ok")));
    let url = server.base_url();
    let header = |arguments: &[&str]| {
        let mut all = vec!["run", "x", "--base-url", &url, "--model", "m"];
        all.extend(arguments);
        let mut terminal = Terminal::open(&project, &all, &[]);
        assert_eq!(terminal.end(), 0);
        terminal.text().lines().find(|line| line.contains("openai/m")).unwrap().to_owned()
    };
    let off = header(&["--sandbox", "off", "--dir", "/"]);
    assert!(off.contains(" · / · no sandbox · run "), "{off}");
    if confines(&project) {
        let network = header(&["--sandbox", "network", "--dir", "/usr"]);
        assert!(network.contains(" · /usr · network open to bash · run "), "{network}");
        let at_home = header(&["--dir", home]);
        assert!(at_home.contains(" · ~ · your home, keys and all, open to bash "), "{at_home}");
    }
}
