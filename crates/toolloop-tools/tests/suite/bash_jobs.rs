//! `bash` in the background: jobs that are looked at, ended, and end with whoever owns them.

use serde_json::{Value, json};
use tokio::task::yield_now;
use toolloop_core::EffectClass;
use toolloop_tools::{BashKill, BashOutput, BashTool, Builtin, Jobs};

use super::bash::{pid, wait_dead};
use super::support::{Folder, call};

struct Tools {
    bash: BashTool,
    output: BashOutput,
    kill: BashKill,
}

impl Tools {
    fn new(folder: &Folder) -> Self {
        let jobs = Jobs::new();
        Self {
            bash: BashTool::new().with_working_dir(folder.path()).with_jobs(jobs.clone()),
            output: BashOutput::new(jobs.clone()),
            kill: BashKill::new(jobs),
        }
    }

    async fn start(&self, command: &str) -> Result<String, String> {
        call(&self.bash, background(command)).await
    }

    /// What the job wrote, until its last line is this.
    async fn until(&self, job: &str, line: &str) -> String {
        let mut all = String::new();
        loop {
            let text = call(&self.output, json!({ "job": job })).await.unwrap();
            let (new, _) = text.rsplit_once('[').unwrap();
            all.push_str(new.trim_start_matches("[no output]\n"));
            if all.ends_with(line) {
                return all;
            }
            yield_now().await;
        }
    }
}

fn background(command: &str) -> Value {
    json!({ "command": command, "background": true })
}

fn started(job: &str) -> Result<String, String> {
    Ok(format!(
        "[{job} started; bash_output shows how it is, bash_kill ends it, and so does the end of \
         this run]"
    ))
}

#[tokio::test]
async fn a_job_is_looked_at_until_it_ends() {
    let folder = Folder::new(&[]);
    let tools = Tools::new(&folder);
    let script = "echo one; until [ -e go ]; do sleep 0.01; done; echo two >&2; exit 3";
    assert_eq!(tools.start(script).await, started("job_1"));
    assert_eq!(tools.until("job_1", "one\n").await, "one\n");
    folder.write("go", b"");
    let look = json!({ "job": "job_1", "wait_seconds": 30 });
    let ended = call(&tools.output, look.clone()).await;
    assert_eq!(ended, Ok("[stderr]\ntwo\n[exit code 3]".into()));
    assert_eq!(call(&tools.output, look).await, Ok("[no output]\n[exit code 3]".into()));
}

#[tokio::test]
async fn a_running_job_does_not_hold_up_a_look() {
    let folder = Folder::new(&[]);
    let tools = Tools::new(&folder);
    tools.start("sleep 600").await.unwrap();
    let text = call(&tools.output, json!({ "job": "job_1" })).await;
    assert_eq!(text, Ok("[no output]\n[running for 0 s]".into()));
}

#[tokio::test]
async fn a_killed_job_can_clean_up_and_leaves_nothing() {
    let folder = Folder::new(&[]);
    let tools = Tools::new(&folder);
    let script = "trap 'echo cleaned; exit' TERM; setsid sleep 600 & echo $! >pid; wait";
    tools.start(script).await.unwrap();
    let pid = pid(&folder.path().join("pid")).await;
    let killed = call(&tools.kill, json!({ "job": "job_1" })).await;
    assert_eq!(killed, Ok("cleaned\n[killed]".into()));
    wait_dead(&pid).await;
    let again = call(&tools.kill, json!({ "job": "job_1" })).await;
    assert_eq!(again, Ok("[no output]\n[killed]".into()));
}

#[tokio::test]
async fn a_job_has_the_time_it_is_given() {
    let folder = Folder::new(&[]);
    let tools = Tools::new(&folder);
    let mut call_ = background("echo up; sleep 600");
    call_["timeout_seconds"] = json!(1);
    call(&tools.bash, call_).await.unwrap();
    let ended = call(&tools.output, json!({ "job": "job_1", "wait_seconds": 30 })).await;
    assert!(ended.unwrap().starts_with("up\n[killed after its time limit of 1 s;"));
}

#[tokio::test]
async fn jobs_end_with_their_owner() {
    let folder = Folder::new(&[]);
    let tools = Tools::new(&folder);
    tools.start("sleep 600 & echo $! >pid; wait").await.unwrap();
    let pid = pid(&folder.path().join("pid")).await;
    let Tools { bash, output, kill } = tools;
    drop((bash, output));
    assert_eq!(call(&kill, json!({ "job": "x" })).await.unwrap_err().lines().count(), 1);
    drop(kill);
    wait_dead(&pid).await;
}

#[tokio::test]
async fn output_of_a_job_is_bounded_between_two_looks() {
    let folder = Folder::new(&[]);
    let tools = Tools::new(&folder);
    let script =
        "echo first; head -c 10000000 /dev/zero | tr '\\0' x | fold -w 99; echo; echo last";
    tools.start(script).await.unwrap();
    let ended = call(&tools.output, json!({ "job": "job_1", "wait_seconds": 60 })).await.unwrap();
    assert!(ended.len() < 33 * 1024, "{}", ended.len());
    assert!(ended.starts_with("first\nxxx") && ended.ends_with("xxx\nlast\n[exit code 0]"));
    assert!(ended.contains("bytes left out ...]"));
}

#[tokio::test]
async fn there_is_a_limit_of_running_jobs() {
    let folder = Folder::new(&[]);
    let tools = Tools::new(&folder);
    for number in 1..=8 {
        assert_eq!(tools.start("sleep 600").await, started(&format!("job_{number}")));
    }
    let error = tools.start("sleep 600").await.unwrap_err();
    assert!(
        error.starts_with(
            "8 jobs run already, which is the limit. Jobs are: job_1 (running: sleep 600), "
        ),
        "{error}"
    );
    call(&tools.kill, json!({ "job": "job_3" })).await.unwrap();
    assert_eq!(tools.start("sleep 600").await, started("job_9"));
}

#[tokio::test]
async fn the_limit_holds_for_jobs_that_start_at_once() {
    let folder = Folder::new(&[]);
    let tools = Tools::new(&folder);
    for _ in 1..8 {
        tools.start("sleep 600").await.unwrap();
    }
    let (one, other) = tokio::join!(tools.start("sleep 600"), tools.start("sleep 600"));
    assert_ne!(one.is_ok(), other.is_ok());
}

#[tokio::test]
async fn an_unknown_job_is_told_which_there_are() {
    let folder = Folder::new(&[]);
    let tools = Tools::new(&folder);
    let look = json!({ "job": "7" });
    assert_eq!(
        call(&tools.output, look.clone()).await,
        Err("There is no job `7`. There are no jobs; bash starts one with background. Jobs end \
             with the program that started them."
            .into())
    );
    tools.start("true").await.unwrap();
    call(&tools.output, json!({ "job": "job_1", "wait_seconds": 30 })).await.unwrap();
    assert_eq!(
        call(&tools.output, look).await,
        Err("There is no job `7`. Jobs are: job_1 (ended: true). Jobs end with the program that \
             started them."
            .into())
    );
}

#[tokio::test]
async fn a_tool_without_jobs_says_so() {
    let folder = Folder::new(&[]);
    let tool = BashTool::new().with_working_dir(folder.path());
    let error = call(&tool, background("true")).await;
    assert_eq!(error, Err("Commands cannot run in the background here. Leave it out.".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_built_in_tools_share_their_jobs() {
    let folder = Folder::new(&[]);
    let tools = Builtin::in_folder(folder.path()).unwrap().tools::<()>();
    let named =
        |name: &str| tools.iter().find(|tool| tool.definition().name == name).unwrap().clone();
    call(&*named("bash"), background("echo hi")).await.unwrap();
    let look = json!({ "job": "job_1", "wait_seconds": 30 });
    assert_eq!(call(&*named("bash_output"), look).await, Ok("hi\n[exit code 0]".into()));
    assert_eq!(named("bash_output").effect_class(), EffectClass::ReadOnly);
    assert_eq!(named("bash_kill").effect_class(), EffectClass::Idempotent);
}
