use serde_json::json;
use toolloop_fake::{Call, FakeServer, Reply, Script};

use crate::support::{Project, Ran};

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
