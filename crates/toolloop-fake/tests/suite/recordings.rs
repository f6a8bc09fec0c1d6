use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;
use toolloop_fake::Refusal;

/// What was recorded of real servers.
pub(crate) struct Recordings(PathBuf);

/// A request that a real server has answered.
pub(crate) struct Recorded {
    /// Where it stands.
    pub(crate) name: String,
    pub(crate) provider: String,
    /// The path it was sent to, where that is known.
    pub(crate) path: Option<String>,
    pub(crate) model: String,
    pub(crate) request: Value,
}

impl Recordings {
    /// Those of the folder that `TOOLLOOP_CORPUS` names, where it does.
    pub(crate) fn find() -> Option<Self> {
        let path = env::var_os("TOOLLOOP_CORPUS").map(PathBuf::from);
        if path.is_none() {
            println!("skipped: TOOLLOOP_CORPUS names no folder of recorded streams");
        }
        path.map(Self)
    }

    /// The requests of an API that were answered with success.
    pub(crate) fn requests(&self, api: &str) -> Vec<Recorded> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut requests = Vec::new();
        for stream in read(&self.0.join("manifest.json"))["streams"].as_array().unwrap() {
            if stream["api"] == api
                && let Some(name) = stream["request"].as_str()
            {
                requests.push(Recorded {
                    name: name.to_owned(),
                    provider: text(&stream["provider"]),
                    path: None,
                    model: text(&stream["model"]),
                    request: read(&self.0.join(name)),
                });
            }
        }
        for entry in fs::read_dir(self.0.join("_dialogues")).unwrap() {
            let file = entry.unwrap().path();
            let dialogue = read(&file);
            let steps = dialogue["steps"].as_array().unwrap().iter().enumerate();
            let answered =
                steps.filter(|(_, step)| dialogue["api"] == api && step["status"] == 200);
            requests.extend(answered.map(|(at, step)| Recorded {
                name: format!("{}, step {at}", file.display()),
                provider: text(&dialogue["provider"]),
                path: step["path"].as_str().map(str::to_owned),
                model: text(&step["request"]["model"]),
                request: step["request"].clone(),
            }));
        }
        requests
    }

    /// The refusals of all APIs.
    pub(crate) fn refusals(&self) -> Vec<Value> {
        read(&self.0.join("errors.json")).as_array().unwrap().clone()
    }
}

/// Every request is accepted, and there are more than `at_least` of them.
pub(crate) fn assert_accepted(
    requests: &[Recorded],
    at_least: usize,
    validate: impl Fn(&Recorded) -> Result<(), Refusal>,
) {
    let refused: Vec<_> = requests
        .iter()
        .filter_map(|recorded| Some((&recorded.name, validate(recorded).err()?)))
        .collect();
    assert_eq!(refused, []);
    println!("{} recorded requests are accepted", requests.len());
    assert!(requests.len() > at_least, "only {} requests found", requests.len());
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}
