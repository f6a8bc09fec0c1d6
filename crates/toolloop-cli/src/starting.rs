//! [`Starting`]: starts the MCP servers of a folder, if a person agrees to them.

use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use toolloop::mcp::{McpOptions, McpServers};

use crate::asking::{Asked, elicit};
use crate::exit::Exit;
use crate::face::Face;
use crate::grants::Grants;
use crate::servers::FolderServers;
use crate::signals::Signals;
use crate::terminal::keys::Keyboard;
use crate::terminal::question::{Agreed, Question, Said};

/// Starts servers before anything else goes on.
pub(crate) struct Starting<'a> {
    pub(crate) face: &'a mut dyn Face,
    pub(crate) signals: &'a mut Signals,
    pub(crate) began: Instant,
    /// Where questions of servers go; `None`: nobody can be asked.
    pub(crate) person: Option<mpsc::UnboundedSender<Asked>>,
    pub(crate) folder: PathBuf,
}

impl Starting<'_> {
    /// Starts them, if `agreed` by a flag, or by a person now or earlier.
    pub(crate) async fn start(
        &mut self,
        found: FolderServers,
        agreed: bool,
        grants: &mut Grants,
    ) -> io::Result<Started> {
        if !agreed && !grants.cover_servers(&found.text) {
            if self.person.is_none() {
                return Ok(Started::NobodyToAsk);
            }
            let question = Question::Servers(found.consent());
            match put(question, self.face, self.signals, self.began).await? {
                Put::Said(Said::Servers(Agreed::Once)) => {}
                Put::Said(Said::Servers(Agreed::Always)) => {
                    if let Err(report) = grants.add_servers(&found.text) {
                        self.face.warn(&report, self.began.elapsed())?;
                    }
                }
                Put::Said(_) => return Ok(Started::Refused),
                Put::Nobody => return Ok(Started::NobodyToAsk),
                Put::Signal(signal) => return Ok(Started::Signal(signal)),
            }
        }
        let options = McpOptions {
            folder: Some(self.folder.clone()),
            elicit: self.person.clone().map(elicit),
        };
        let names: Vec<_> = found.servers.iter().map(|server| server.name.clone()).collect();
        self.face.starting(&names, self.began.elapsed())?;
        let mut starting = pin!(McpServers::start(found.servers, options));
        let started = loop {
            tokio::select! {
                servers = &mut starting => break Started::Servers(servers),
                // Dropping what was begun kills it.
                signal = self.signals.next() => break Started::Signal(signal),
                () = sleep(TICK) => self.face.tick(self.began.elapsed())?,
            }
        };
        self.face.starting(&[], self.began.elapsed())?;
        Ok(started)
    }
}

/// What became of starting.
pub(crate) enum Started {
    /// Those that did not start are among the faults.
    Servers(McpServers),
    /// A person said no.
    Refused,
    /// Nobody has agreed, and nobody can be asked.
    NobodyToAsk,
    /// This signal came meanwhile.
    Signal(Exit),
}

/// What became of a question.
pub(crate) enum Put {
    Said(Said),
    /// There is no terminal, or no more.
    Nobody,
    Signal(Exit),
}

/// Puts a question and waits for the answer.
pub(crate) async fn put(
    mut question: Question,
    face: &mut dyn Face,
    signals: &mut Signals,
    began: Instant,
) -> io::Result<Put> {
    let Ok(mut keyboard) = Keyboard::open() else { return Ok(Put::Nobody) };
    keyboard.forget();
    face.ask(&question, None, began.elapsed())?;
    let put = loop {
        let key = tokio::select! {
            signal = signals.next() => break Put::Signal(signal),
            key = keyboard.next() => key,
        };
        let Some(key) = key else { break Put::Nobody };
        match question.handle(key) {
            Some(said) => break Put::Said(said),
            None => face.ask(&question, Some(key), began.elapsed())?,
        }
    };
    face.answered(began.elapsed())?;
    Ok(put)
}

const TICK: Duration = Duration::from_millis(50);
