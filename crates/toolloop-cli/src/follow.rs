//! [`Follower`]: follows a run to its end: events to the face, questions to the person, signals
//! to the run.

use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;
use toolloop::tool::{Inbox, LoopStream, ToolApproval, Verdict};
use toolloop_core::{LlmError, LoopEvent, ToolLoopResult, Usage};

use crate::asking::{Ask, Asked, Asking};
use crate::exit::Exit;
use crate::face::Face;
use crate::signals::Signals;
use crate::steering::Steering;
use crate::terminal::approval::{Answer, CallQuestion};
use crate::terminal::form::Form;
use crate::terminal::keys::{self, Key, Keyboard};
use crate::terminal::question::{Question, Said};

/// What follows a run.
pub(crate) struct Follower<'a> {
    face: &'a mut dyn Face,
    signals: Signals,
    asking: Asking,
    asks: mpsc::UnboundedReceiver<Asked>,
    cancel: CancellationToken,
    started: Instant,
    tally: Tally,
    waiting: VecDeque<Asked>,
    open: Option<Open>,
    /// Where typed lines go; `None`: nobody types.
    steering: Option<Steering>,
    keyboard: Option<Keyboard>,
    /// Until when keys are no answer to the question: they were meant for something else.
    deaf_until: Duration,
    /// When something was last typed for the model.
    last_typed: Option<Duration>,
}

/// How it ended, as far as the loop itself can tell.
pub(crate) enum End {
    /// With a result; also when a limit or a cancellation ended it.
    Result(Box<ToolLoopResult>),
    /// With an error of the model.
    Error(LlmError),
    /// It did not stop in time after a signal, or a second one came.
    Abandoned,
}

/// What was seen of the run, for ends without a result.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) iterations: u32,
    pub(crate) tools: usize,
    pub(crate) usage: Option<Usage>,
    /// The text of the reply that arrives.
    pub(crate) text: String,
    /// The signal that came.
    pub(crate) signal: Option<Exit>,
}

/// A question on the screen.
struct Open {
    asked: Asked,
    question: Question,
}

impl<'a> Follower<'a> {
    /// Signals and `cancel` are of the run that `asks` comes from and that began at `started`; its
    /// loop has the inbox.
    pub(crate) fn new(
        face: &'a mut dyn Face,
        signals: Signals,
        asking: Asking,
        asks: mpsc::UnboundedReceiver<Asked>,
        cancel: CancellationToken,
        inbox: Inbox,
        started: Instant,
    ) -> Self {
        let tally = Tally::default();
        let keyboard = (face.can_steer() && keys::is_ours()).then(Keyboard::open);
        let keyboard = keyboard.and_then(Result::ok);
        let steering = keyboard.is_some().then(|| Steering::new(inbox));
        Self {
            face,
            signals,
            asking,
            asks,
            cancel,
            started,
            tally,
            waiting: VecDeque::new(),
            open: None,
            steering,
            keyboard,
            deaf_until: Duration::ZERO,
            last_typed: None,
        }
    }

    /// Follows the run to its end. An error means that the face can show nothing any more.
    ///
    /// The stream is dropped before this returns: what the run had started has ended then.
    pub(crate) async fn follow(mut self, mut stream: LoopStream) -> io::Result<(End, Tally)> {
        let end = self.watch(&mut stream).await?;
        let unsent = self.steering.take().map(Steering::into_unsent).unwrap_or_default();
        self.face.unsent(&unsent, self.started.elapsed())?;
        Ok((end, self.tally))
    }

    async fn watch(&mut self, stream: &mut LoopStream) -> io::Result<End> {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut patience = pin!(sleep_until(self.started));
        loop {
            let now = self.started.elapsed();
            tokio::select! {
                // In this order: a stream that never pauses must starve neither the person's
                // signals nor the screen.
                biased;
                signal = self.signals.next() => {
                    if self.tally.signal.replace(signal).is_some() {
                        return Ok(End::Abandoned);
                    }
                    self.cancel.cancel();
                    self.close_question(now)?;
                    patience.as_mut().reset(Instant::now() + PATIENCE);
                }
                () = &mut patience, if self.tally.signal.is_some() => return Ok(End::Abandoned),
                _ = ticks.tick() => {
                    self.drop_given_up(now)?;
                    self.face.tick(now)?;
                }
                key = next_key(&mut self.keyboard) => self.key(key, now)?,
                Some(asked) = self.asks.recv() => {
                    self.waiting.push_back(asked);
                    self.ask_next(now)?;
                }
                event = stream.next() => match event {
                    Some(Ok(LoopEvent::Done(result))) => return Ok(End::Result(Box::new(result))),
                    Some(Ok(event)) => {
                        self.tally.count(&event);
                        self.face.event(&event, now)?;
                        self.messages_went_in(&event, now)?;
                    }
                    Some(Err(error)) => return Ok(End::Error(error)),
                    // The stream says how it ended before it ends.
                    None => return Ok(End::Abandoned),
                },
            }
        }
    }

    /// Puts the next who waits to the person, if no question is open.
    fn ask_next(&mut self, now: Duration) -> io::Result<()> {
        while self.open.is_none()
            && let Some(asked) = self.waiting.pop_front()
        {
            // "Always" may have covered it meanwhile.
            let asked = match asked {
                Asked::Call(ask) if self.asking.policy().decide(&ask.call) == Verdict::Allow => {
                    answer(ask, ToolApproval::Approve);
                    continue;
                }
                asked => asked,
            };
            match &mut self.keyboard {
                // Who is typing may not see the question yet.
                Some(_) => {
                    self.deaf_until = self.last_typed.map_or(Duration::ZERO, |typed| typed + PAUSE);
                }
                // Without a keyboard there is no answer, and the run ends for the want of it.
                None => match Keyboard::open() {
                    Ok(mut keyboard) => {
                        keyboard.forget();
                        self.keyboard = Some(keyboard);
                    }
                    Err(_) => continue,
                },
            }
            let question = match &asked {
                Asked::Call(ask) => {
                    Question::Call(CallQuestion::new(ask.call.clone(), ask.preview.clone()))
                }
                Asked::Server(ask) => Question::Form(Form::new(ask.elicitation.clone())),
            };
            self.face.ask(&question, None, now)?;
            self.open = Some(Open { asked, question });
        }
        Ok(())
    }

    fn key(&mut self, key: Option<Key>, now: Duration) -> io::Result<()> {
        let Some(key) = key else {
            // A terminal that is gone is no answer; its signal comes.
            self.keyboard = None;
            return self.close_question(now);
        };
        // A line that was begun before the question is finished first.
        let types = self.steering.as_ref().is_some_and(Steering::is_typing);
        match &mut self.open {
            Some(_) if !types && now < self.deaf_until => {
                self.deaf_until = now + PAUSE;
                Ok(())
            }
            Some(open) if !types => match open.question.handle(key) {
                Some(said) => self.answer(said, now),
                None => self.face.ask(&open.question, Some(key), now),
            },
            _ => match &mut self.steering {
                Some(steering) => {
                    self.last_typed = Some(now);
                    steering.handle(key);
                    // Nobody who writes on drops a line.
                    if key == Key::Escape {
                        self.deaf_until = now;
                    }
                    self.face.typed(steering, now)
                }
                None => Ok(()),
            },
        }
    }

    fn answer(&mut self, said: Said, now: Duration) -> io::Result<()> {
        let Some(Open { asked, .. }) = self.open.take() else { return Ok(()) };
        self.release_keyboard();
        self.face.answered(now)?;
        match (asked, said) {
            (Asked::Call(ask), Said::Call(said)) => {
                let approval = self.approval(said, now)?;
                answer(ask, approval);
            }
            // A server that has gone meanwhile needs no answer.
            (Asked::Server(ask), Said::Form(answer)) => drop(ask.answer.send(answer)),
            _ => {}
        }
        self.ask_next(now)
    }

    fn approval(&mut self, said: Answer, now: Duration) -> io::Result<ToolApproval> {
        Ok(match said {
            Answer::Once => ToolApproval::Approve,
            Answer::Always(scope) => {
                let remembered = self.asking.policy().grants.add(scope.rule);
                if let Err(report) = remembered {
                    self.face.warn(&report, now)?;
                }
                ToolApproval::Approve
            }
            Answer::Edited(arguments) => ToolApproval::Modify(arguments),
            Answer::No(reason) => ToolApproval::Deny(denial(&reason)),
        })
    }

    /// A server whose call has ended no longer wants to know.
    fn drop_given_up(&mut self, now: Duration) -> io::Result<()> {
        match &self.open {
            Some(Open { asked: Asked::Server(ask), .. }) if ask.answer.is_closed() => {
                self.open = None;
                self.release_keyboard();
                self.face.answered(now)?;
                self.ask_next(now)
            }
            _ => Ok(()),
        }
    }

    fn close_question(&mut self, now: Duration) -> io::Result<()> {
        self.waiting.clear();
        let question = self.open.take();
        self.release_keyboard();
        match question {
            Some(_) => self.face.answered(now),
            None => Ok(()),
        }
    }

    /// Without steering, the keyboard is only there for questions.
    fn release_keyboard(&mut self) {
        if self.steering.is_none() {
            self.keyboard = None;
        }
    }

    fn messages_went_in(&mut self, event: &LoopEvent, now: Duration) -> io::Result<()> {
        let (LoopEvent::MessagesInjected { count }, Some(steering)) = (event, &mut self.steering)
        else {
            return Ok(());
        };
        let lines = steering.sent(*count);
        self.face.typed(steering, now)?;
        self.face.sent(&lines, now)
    }
}

impl Tally {
    fn count(&mut self, event: &LoopEvent) {
        match event {
            LoopEvent::IterationStart { iteration, .. } => {
                self.iterations = *iteration;
                self.text.clear();
            }
            LoopEvent::AttemptDiscarded { .. } => self.text.clear(),
            LoopEvent::TextDelta(text) => self.text.push_str(text),
            LoopEvent::ToolExecutionStart { .. } => self.tools += 1,
            LoopEvent::Usage(usage) => {
                self.usage = Some(self.usage.map_or(*usage, |sum| sum + *usage));
            }
            _ => {}
        }
    }
}

/// What the model reads of a person's no.
fn denial(reason: &str) -> String {
    match reason {
        "" => "the user said no".to_owned(),
        reason => format!("the user said no: {reason}"),
    }
}

/// A run that has ended meanwhile needs no answer.
fn answer(ask: Ask, approval: ToolApproval) {
    let _ = ask.answer.send(approval);
}

async fn next_key(keyboard: &mut Option<Keyboard>) -> Option<Key> {
    match keyboard {
        Some(keyboard) => keyboard.next().await,
        None => std::future::pending().await,
    }
}

const TICK: Duration = Duration::from_millis(50);
/// After such a pause, keys are meant for the question that came meanwhile.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a run may take to stop after a signal.
const PATIENCE: Duration = Duration::from_millis(900);
