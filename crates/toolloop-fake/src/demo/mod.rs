//! [`Demo`]: the model `demo`, a script that looks at the user's folder through real tool calls.
//!
//! It reads the request like a model would: which tools are offered, what the user asks, which
//! results are there. It then does the next step: list the folder, read what seems telling,
//! answer. It keeps no state, so a conversation can go on anywhere.

mod answer;
mod listing;
mod turn;
mod wish;

use std::time::Duration;

use serde_json::{Value, json};

use self::listing::Listing;
use self::turn::Turn;
use self::wish::Wish;
use crate::faults::Fault;
use crate::reply::{Call, Reply};

/// The model `demo`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demo {
    /// Pause before every word.
    pub(crate) word_delay: Duration,
}

impl Demo {
    pub(crate) const MODEL: &str = "demo";

    /// What the model says to a request that was accepted.
    pub(crate) fn reply(&self, body: &Value) -> Reply {
        let turn = Turn::read(body);
        let reply = match Wish::of(&turn.task) {
            Wish::Folder => folder(&turn),
            Wish::Files(names) => files(&turn, &names),
            Wish::Command(command) => command_output(&turn, &command),
            Wish::Unknown => Reply::text(answer::cannot()),
        };
        if self.word_delay.is_zero() {
            reply
        } else {
            reply.fault(Fault::DelayEvents(self.word_delay))
        }
    }
}

/// Lists, reads, answers, with what is offered of that.
fn folder(turn: &Turn) -> Reply {
    let read = turn.results("read_file");
    if let Some(result) = turn.results("list_dir").first() {
        let listing = match result.denial() {
            Some(reason) => return Reply::text(answer::denied("list_dir", reason)),
            None => Listing::parse(&result.text),
        };
        let telling = listing.telling();
        if read.is_empty() && turn.offers("read_file") && !telling.is_empty() {
            return Reply::calls(telling.iter().map(|name| read_call(name)));
        }
        return Reply::text(answer::folder(&listing, &result.text, &read));
    }
    if turn.offers("list_dir") {
        return Reply::text("I'll look at the folder.")
            .call(Call::new("list_dir", json!({"path": "."})));
    }
    if turn.offers("bash") || !turn.results("bash").is_empty() {
        return command_output(turn, "ls -Ap");
    }
    if turn.offers("read_file") || !read.is_empty() {
        return files(turn, &["README.md".to_owned()]);
    }
    Reply::text(answer::no_tools("list_dir"))
}

fn files(turn: &Turn, names: &[String]) -> Reply {
    let read = turn.results("read_file");
    if !read.is_empty() {
        return Reply::text(answer::files(&read));
    }
    if turn.offers("read_file") {
        return Reply::calls(names.iter().map(|name| read_call(name)));
    }
    Reply::text(answer::no_tools("read_file"))
}

fn command_output(turn: &Turn, command: &str) -> Reply {
    if let Some(result) = turn.results("bash").first() {
        return Reply::text(match result.denial() {
            Some(reason) => answer::denied("bash", reason),
            None => answer::command(result),
        });
    }
    if turn.offers("bash") {
        return Reply::calls([Call::new("bash", json!({"command": command}))]);
    }
    Reply::text(answer::no_tools("bash"))
}

fn read_call(name: &str) -> Call {
    Call::new("read_file", json!({"path": name}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Content;

    const DEMO: Demo = Demo { word_delay: Duration::ZERO };

    /// Asks until the model answers, running its calls with `run`; gives the calls and the answer.
    fn converse(
        task: &str,
        tools: &[&str],
        run: impl Fn(&str, &Value) -> String,
    ) -> (Vec<String>, String) {
        let offered: Vec<Value> =
            tools.iter().map(|name| json!({"function": {"name": name}})).collect();
        let mut messages = vec![json!({"role": "user", "content": task})];
        let mut made = Vec::new();
        for round in 0..5 {
            let mut body = json!({"messages": messages});
            if !offered.is_empty() {
                body["tools"] = json!(offered);
            }
            let Content::Message(message) = DEMO.reply(&body).content else { panic!() };
            if message.calls.is_empty() {
                return (made, message.text);
            }
            let mut calls = Vec::new();
            let mut results = Vec::new();
            for (index, call) in message.calls.iter().enumerate() {
                let id = format!("{round}_{index}");
                made.push(format!("{} {}", call.name, call.arguments));
                let arguments = serde_json::from_str(&call.arguments).unwrap();
                results.push(json!({
                    "role": "tool", "tool_call_id": id, "content": run(&call.name, &arguments),
                }));
                let function = json!({"name": call.name, "arguments": call.arguments});
                calls.push(json!({"id": id, "type": "function", "function": function}));
            }
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": calls}));
            messages.append(&mut results);
        }
        panic!("no answer after {made:?}")
    }

    fn project(name: &str, arguments: &Value) -> String {
        match (name, arguments["path"].as_str()) {
            ("list_dir", _) => "main.py  60 B\nREADME.md  1.2 KiB\nsrc/\nlogo.png  9 KiB\n".into(),
            ("read_file", Some("README.md")) => "<img src=x>\n\n# Weather\n\nA forecast.\n".into(),
            ("read_file", Some("main.py")) => "import sys\n\nprint(sys.argv)\n".into(),
            ("bash", _) => format!("ran {}\n[exit code 0]", arguments["command"]),
            _ => "`x` does not exist.".into(),
        }
    }

    const ASKED: &str = "What is in this folder?";

    #[test]
    fn a_folder_is_listed_and_read_before_the_answer() {
        let (calls, answer) = converse(ASKED, &["list_dir", "read_file", "bash"], project);
        let expected = [
            r#"list_dir {"path":"."}"#,
            r#"read_file {"path":"README.md"}"#,
            r#"read_file {"path":"main.py"}"#,
        ];
        assert_eq!(calls, expected);
        assert_eq!(
            answer,
            "The folder has 3 files, `main.py`, `README.md` and `logo.png`, and 1 folder, \
             `src/`.\n\n\
             - `README.md` has 5 lines; its heading is “Weather”.\n\
             - `main.py` has 3 lines and begins with “import sys”."
        );
    }

    #[test]
    fn any_subset_of_the_tools_will_do() {
        let (calls, answer) = converse(ASKED, &["list_dir"], project);
        assert_eq!(calls, [r#"list_dir {"path":"."}"#]);
        assert_eq!(
            answer,
            "The folder has 3 files, `main.py`, `README.md` and `logo.png`, and 1 folder, `src/`."
        );

        let (calls, answer) = converse(ASKED, &["bash"], project);
        assert_eq!(calls, [r#"bash {"command":"ls -Ap"}"#]);
        assert_eq!(answer, "`ls -Ap` gives:\n\n```\nran \"ls -Ap\"\n[exit code 0]\n```");

        let (calls, answer) = converse(ASKED, &["read_file"], project);
        assert_eq!(calls, [r#"read_file {"path":"README.md"}"#]);
        assert_eq!(answer, "`README.md` has 5 lines; its heading is “Weather”.");

        let (calls, answer) = converse(ASKED, &[], project);
        assert_eq!(calls, [""; 0]);
        assert_eq!(
            answer,
            "I would need the tool `list_dir` for that, and it was not offered to me. I am the \
             built-in demo model, a script that can list and read the folder it runs in: ask \
             “What is in this folder?”. For a real model, set OPENAI_API_KEY, ANTHROPIC_API_KEY \
             or GEMINI_API_KEY, or start Ollama."
        );
    }

    #[test]
    fn a_command_is_run_where_one_is_asked_for() {
        let count = "Count the lines of all files here";
        let (calls, answer) = converse(count, &["list_dir", "read_file", "bash"], project);
        assert_eq!(calls, [r#"bash {"command":"wc -l *"}"#]);
        assert_eq!(answer, "`wc -l *` gives:\n\n```\nran \"wc -l *\"\n[exit code 0]\n```");
        let (calls, _) = converse("Please run `git status`", &["bash"], project);
        assert_eq!(calls, [r#"bash {"command":"git status"}"#]);
    }

    #[test]
    fn a_named_file_is_read_at_once() {
        let (calls, answer) =
            converse("What does main.py do?", &["list_dir", "read_file"], project);
        assert_eq!(calls, [r#"read_file {"path":"main.py"}"#]);
        assert_eq!(answer, "`main.py` has 3 lines and begins with “import sys”.");
        let (_, answer) = converse("Show me gone.txt", &["read_file"], |_, _| {
            "`gone.txt` does not exist under /tmp. list_dir shows what does.".into()
        });
        assert_eq!(answer, "`gone.txt` does not exist under /tmp. list_dir shows what does.");
    }

    #[test]
    fn a_denied_call_is_owned_up_to() {
        let denied = |_: &str, _: &Value| "This call was denied: not now. It was not run.".into();
        let reason = "This call was denied: not now. It was not run.";
        let (_, answer) = converse(ASKED, &["list_dir", "read_file"], denied);
        let sentence = "My call of `list_dir` did not go through, so I cannot say:";
        assert_eq!(answer, format!("{sentence} {reason}"));
        let (_, answer) = converse("Run the tests", &["bash"], denied);
        assert!(answer.starts_with("My call of `bash` did not go through"), "{answer}");
        let (_, answer) = converse(ASKED, &["list_dir", "read_file"], |name, arguments| {
            if name == "list_dir" { project(name, arguments) } else { denied(name, arguments) }
        });
        let unread =
            format!("- `README.md` was not read: {reason}\n- `main.py` was not read: {reason}");
        assert!(answer.ends_with(&unread), "{answer}");
    }

    #[test]
    fn what_a_script_cannot_answer_it_says() {
        let (calls, answer) = converse("Write a poem", &["list_dir", "read_file"], project);
        assert_eq!(calls, [""; 0]);
        assert!(answer.starts_with("I am the built-in demo model, a script"), "{answer}");
    }

    #[test]
    fn without_tools_at_the_end_it_answers_from_what_it_has() {
        let call = json!({"id": "a", "function": {"name": "list_dir", "arguments": "{}"}});
        let messages = json!([
            {"role": "user", "content": ASKED},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": "a.txt  1 B\n"},
        ]);
        let body = json!({"messages": messages});
        assert_eq!(DEMO.reply(&body), Reply::text("The folder has 1 file, `a.txt`."));
    }

    #[test]
    fn the_tools_are_there_but_must_not_be_used() {
        let body = json!({
            "messages": [{"role": "user", "content": ASKED}],
            "tools": [{"function": {"name": "list_dir"}}], "tool_choice": "none",
        });
        let Content::Message(message) = DEMO.reply(&body).content else { panic!() };
        assert_eq!(message.calls, []);
    }
}
