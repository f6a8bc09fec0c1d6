use serde_json::json;
use toolloop_fake::{Call, FakeServer, Reply, Script};

use crate::support::{BINARY, Project, Ran, Terminal};

#[test]
fn flags_win_over_environment_over_folder_over_person() {
    let project = Project::new();
    let server = FakeServer::start(Script::from_fn(|request| {
        Reply::text(request.body["model"].as_str().unwrap().to_owned())
    }));
    let url = server.base_url();
    project.config(&format!("model = \"openai/person\"\nbase_url = \"{url}\"\n"));
    let model = |project: &Project, arguments: &[&str], variable: Option<&str>| {
        let mut command = project.command(arguments);
        if let Some(model) = variable {
            command.env("TOOLLOOP_MODEL", model);
        }
        Ran::of(command.output().unwrap()).stdout
    };
    assert_eq!(model(&project, &["run", "x"], None), "person\n");
    project.write("toolloop.toml", "model = \"openai/folder\"\n");
    assert_eq!(model(&project, &["run", "x"], None), "folder\n");
    assert_eq!(model(&project, &["run", "x"], Some("")), "folder\n");
    assert_eq!(model(&project, &["run", "x"], Some("openai/variable")), "variable\n");
    let flag = ["run", "x", "--model", "openai/flag"];
    assert_eq!(model(&project, &flag, Some("openai/variable")), "flag\n");
}

#[test]
fn an_unknown_setting_is_an_error_with_its_line() {
    let project = Project::new();
    project.write("toolloop.toml", "# settings\nmodle = \"demo\"\n");
    let ran = project.run(&["run", "x"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (
            Some(2),
            "error: in toolloop.toml, line 2: there is no setting `modle`\n  \
             Did you mean `model`?\n"
        )
    );
}

#[test]
fn a_folder_can_neither_approve_calls_nor_send_the_key_away() {
    let project = Project::new();
    project.write("toolloop.toml", "yes = true\n");
    assert_eq!(project.run(&["run", "x"]).code, Some(2));

    project.write("toolloop.toml", "base_url = \"http://10.255.255.1/v1\"\n");
    let mut command = project.command(&["run", "x", "--model", "openai/gpt-5"]);
    command.env("OPENAI_API_KEY", "sk-secret");
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("would send your key to http://10.255.255.1/v1"), "{ran:?}");
}

#[test]
fn a_persons_settings_may_approve() {
    let project = Project::new();
    let call = Call::new("bash", json!({"command": "touch made"}));
    let server = FakeServer::start(Script::new([Reply::calls([call]), Reply::text("Made.")]));
    project.config("yes = [\"bash\"]\n");
    assert_eq!(project.run_at(&server, &["x"]).code, Some(0));
    assert!(project.folder().join("made").exists());
}

#[test]
fn config_says_where_each_value_came_from_and_shows_no_key() {
    let project = Project::new();
    project.config("max_iterations = 7\n\n[openai]\napi_key = \"sk-secret-key\"\n");
    project.write(
        "toolloop.toml",
        "dialect = \"xml\"\n[approvals]\ndeny = [\"bash(command: rm *)\"]\n",
    );
    let mut command = project.command(&["config"]);
    command.env("TOOLLOOP_MODEL", "openai/gpt-5");
    let ran = Ran::of(command.output().unwrap());
    let expected = "\
        model\topenai/gpt-5\tTOOLLOOP_MODEL in the environment\n\
        base_url\tthe provider's\tthe defaults\n\
        tools\tall\tthe defaults\n\
        system\tbuilt in\tthe defaults\n\
        dialect\txml\ttoolloop.toml, line 1\n\
        one_tool\twhere calls are text\tthe defaults\n\
        max_iterations\t7\t~/.config/toolloop/config.toml, line 1\n\
        timeout\tnone\tthe defaults\n\
        yes\task\tthe defaults\n\
        sandbox\tstrict\tthe defaults\n\
        writable\tnone\tthe defaults\n\
        approvals.deny\tbash(command: rm *)\ttoolloop.toml, line 3\n\
        a run takes\topenai/gpt-5\t\n\
        at\thttps://api.openai.com/v1\tthe defaults\n\
        with the key\t(not shown)\t~/.config/toolloop/config.toml, line 4\n";
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), expected), "{ran:?}");
}

#[test]
fn doctor_finds_what_a_run_would_stumble_over() {
    let project = Project::new();
    let ran = project.run(&["doctor"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("✓ model      demo: scripted"), "{}", ran.stdout);
    assert!(ran.stdout.contains("✗ Ollama     nothing answers at"), "{}", ran.stdout);

    let server = FakeServer::start(Script::new([Reply::text("x")]).require_key("right"));
    let doctor = |key: &str| {
        let mut command = project.command(&["doctor"]);
        command.env("OPENAI_API_KEY", key).env("OPENAI_BASE_URL", server.base_url());
        Ran::of(command.output().unwrap())
    };
    let refused = doctor("sk-wrong-0123");
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stdout.contains("refused the key"), "{}", refused.stdout);
    assert!(!refused.stdout.contains("sk-wrong"), "{}", refused.stdout);

    project.write("toolloop.toml", "modle = \"demo\"\n");
    let ran = project.run(&["doctor"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stdout.contains("✗ settings   in toolloop.toml, line 1"), "{}", ran.stdout);
}

#[test]
fn doctor_shows_no_control_characters_and_asks_nobody_in_vain() {
    let project = Project::new();
    project.write("toolloop.toml", "model = \"ollama/\\u001b[2Jx\"\n");
    let mut command = project.command(&["doctor"]);
    for name in ["CLIENT_ID", "CLIENT_SECRET", "AUTH_URL", "BASE_URL", "DEPLOYMENT_ID"] {
        command.env(format!("AICORE_{name}"), "http://127.0.0.1:1");
    }
    let ran = Ran::of(command.output().unwrap());
    assert!(!ran.stdout.contains('\u{1b}'), "{:?}", ran.stdout);
    assert!(ran.stdout.contains("– SAP AI Core set up; only a run asks it\n"), "{}", ran.stdout);
}

#[test]
fn a_folder_that_is_gone_is_named() {
    let project = Project::new();
    for command in ["run hi", "config", "doctor", "mcp list"] {
        let gone = project.folder().join("gone");
        std::fs::create_dir(&gone).unwrap();
        let mut shell = std::process::Command::new("sh");
        let script = format!("rmdir ../gone && exec \"$0\" {command}");
        shell.args(["-c", &script, BINARY]).current_dir(&gone).env_clear();
        shell.envs(project.environment()).stdin(std::process::Stdio::null());
        let ran = Ran::of(shell.output().unwrap());
        assert_eq!(
            (ran.code, ran.stderr.as_str()),
            (
                Some(2),
                "error: the folder this was started in does not exist any more\n  \
                 Go to another one: cd DIR\n"
            ),
            "{command}"
        );
    }
}

#[test]
fn help_fits_the_terminal() {
    let project = Project::new();
    let mut terminal = Terminal::open(&project, &["run", "--help"], &[]);
    assert_eq!(terminal.end(), 0);
    terminal.wait_for("config.toml.");
    let widest = terminal.text().lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{}", terminal.text());
}

#[test]
fn folders_that_cannot_be_are_no_settings() {
    let project = Project::new();
    let mut command = project.command(&["run", "hi", "--model", "demo"]);
    command.env("XDG_CONFIG_HOME", "/dev/null").env("XDG_STATE_HOME", "/dev/null");
    let ran = Ran::of(command.output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn an_empty_variable_is_none() {
    let project = Project::new();
    let mut command = project.command(&["run", "hi", "--model", "demo"]);
    for name in ["MODEL", "TIMEOUT", "SANDBOX", "YES", "DIALECT", "MAX_ITERATIONS"] {
        command.env(format!("TOOLLOOP_{name}"), "");
    }
    let ran = Ran::of(command.output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}
