//! [`Answer`] is a whole response with its faults; [`steps`](Answer::steps) turns it into what
//! the connection does, one thing after the other. Pure: the player is in `player.rs`.

use std::time::Duration;

use serde_json::json;

use crate::faults::Fault;
use crate::reply::{Chunk, Content, Message, Raw, Reply};

/// A response, before it is played.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    /// Whether the body is a stream of unknown length.
    pub(crate) streamed: bool,
    pub(crate) events: Vec<Vec<u8>>,
    pub(crate) filler: Filler,
    pub(crate) faults: Vec<Fault>,
}

/// An event of the API around text that is still missing; what big and broken events are made of.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Filler {
    pub(crate) prefix: Vec<u8>,
    pub(crate) suffix: Vec<u8>,
}

/// One thing a connection does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    Wait(Duration),
    Head {
        status: u16,
        headers: Vec<(String, String)>,
    },
    /// `event` is false where a cut leaves only the beginning of one.
    Write {
        bytes: Vec<u8>,
        event: bool,
    },
    Fill {
        filler: Filler,
        fill: u64,
        event: bool,
    },
    /// For ever, with a ping at an interval.
    Stall {
        ping: Option<(Duration, Vec<u8>)>,
    },
    /// The proper end of the body.
    End,
    Close,
    Reset,
}

impl Answer {
    /// What answers a request that was accepted. `message` and `error` write in the form of an
    /// API; `message` is told whether its stream has a proper end.
    pub(crate) fn to(
        reply: Reply,
        message: impl FnOnce(Message, Chunk, bool) -> Self,
        error: impl FnOnce(u16, &str) -> Self,
    ) -> Self {
        let Reply { content, chunk, headers, faults } = reply;
        let mut answer = match content {
            Content::Message(said) => message(said, chunk, !faults.contains(&Fault::NoEndMarker)),
            Content::Error { status, message } => error(status, &message),
            Content::Raw(raw) => Self::raw(raw, chunk),
        };
        // The headers of a script replace those of the same name.
        answer.headers.retain(|(name, _)| !headers.iter().any(|(own, _)| own == name));
        answer.headers.extend(headers);
        answer.faults = faults;
        answer
    }

    /// A body that is no stream.
    pub(crate) fn whole(status: u16, content_type: &str, body: String) -> Self {
        Self::new(status, content_type, vec![body.into_bytes()], Filler::json())
    }

    /// Events, each sent on its own.
    pub(crate) fn stream(content_type: &str, events: Vec<Vec<u8>>, filler: Filler) -> Self {
        Self { streamed: true, ..Self::new(200, content_type, events, filler) }
    }

    /// Bytes as they are.
    pub(crate) fn raw(raw: Raw, chunk: Chunk) -> Self {
        let Raw { status, content_type, body } = raw;
        let filler = match content_type.as_str() {
            stream if stream.starts_with(SSE) => {
                Filler { prefix: br#"data: {"id":""#.to_vec(), suffix: b"\"}\n\n".to_vec() }
            }
            lines if lines.starts_with(LINES) => {
                Filler { prefix: br#"{"id":""#.to_vec(), suffix: b"\"}\n".to_vec() }
            }
            _ => Filler::json(),
        };
        let streamed = content_type.starts_with(SSE) || content_type.starts_with(LINES);
        let events = chunk.split_bytes(&body);
        Self { streamed, ..Self::new(status, &content_type, events, filler) }
    }

    fn new(status: u16, content_type: &str, events: Vec<Vec<u8>>, filler: Filler) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self { status, headers, streamed: false, events, filler, faults: Vec::new() }
    }

    /// Whether an event is a line.
    fn is_lines(&self) -> bool {
        self.headers.iter().any(|(name, value)| name == "content-type" && value.starts_with(LINES))
    }

    /// A sign of life without content, as the API sends it.
    fn ping(&self) -> Vec<u8> {
        let mut own = self.events.iter().filter(|event| event.starts_with(b"event: ping\n"));
        own.next().map_or_else(|| b": ping\n\n".to_vec(), Clone::clone)
    }

    /// What the connection does. Nothing follows a stall, an end, a close or a reset.
    pub(crate) fn steps(self) -> Vec<Step> {
        let mut steps = Vec::new();
        for fault in &self.faults {
            match fault {
                Fault::DelayHead(delay) => steps.push(Step::Wait(*delay)),
                Fault::Mute => steps.push(Step::Stall { ping: None }),
                Fault::Reset => steps.push(Step::Reset),
                _ => {}
            }
        }
        let mut body = self.body();
        let mut headers = self.headers;
        if self.streamed {
            headers.push(("transfer-encoding".to_owned(), "chunked".to_owned()));
        } else {
            // The length that is promised, whatever a cut leaves of it.
            let length: u64 = body.iter().map(Step::body_bytes).sum();
            headers.push(("content-length".to_owned(), length.to_string()));
        }
        steps.push(Step::Head { status: self.status, headers });
        for fault in &self.faults {
            if let Fault::CutAtByte(limit) = fault {
                body = cut(body, *limit);
            }
        }
        steps.append(&mut body);
        steps.push(Step::End);
        let last = steps.iter().position(Step::is_final).map_or(steps.len(), |at| at + 1);
        steps.truncate(last);
        steps
    }

    fn body(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for at in 0..=self.events.len() {
            for fault in &self.faults {
                if fault.event().is_some_and(|event| event.min(self.events.len()) == at) {
                    steps.push(self.step_of(fault));
                }
            }
            if steps.contains(&Step::End) {
                break;
            }
            let Some(event) = self.events.get(at) else { break };
            for fault in &self.faults {
                if let Fault::DelayEvents(delay) = fault {
                    steps.push(Step::Wait(*delay));
                }
            }
            steps.push(Step::Write { bytes: event.clone(), event: true });
        }
        steps
    }

    fn step_of(&self, fault: &Fault) -> Step {
        let Filler { prefix, suffix } = &self.filler;
        let bytes = match fault {
            Fault::EndAtEvent(_) => return Step::End,
            Fault::StallAtEvent { ping_every, .. } => {
                // Lines have no comments.
                let may_ping = self.streamed && !self.is_lines();
                let interval = ping_every.filter(|_| may_ping);
                return Step::Stall { ping: interval.map(|interval| (interval, self.ping())) };
            }
            Fault::HugeEvent { bytes, .. } => {
                let around = (prefix.len() + suffix.len()) as u64;
                let fill = bytes.saturating_sub(around);
                return Step::Fill { filler: self.filler.clone(), fill, event: true };
            }
            Fault::GarbageAtEvent { bytes, .. } => bytes.clone(),
            Fault::MalformedJsonAtEvent(_) if self.is_lines() => {
                [prefix.as_slice(), b"\n"].concat()
            }
            Fault::MalformedJsonAtEvent(_) => [prefix.as_slice(), b"\n\n"].concat(),
            Fault::InvalidUtf8AtEvent(_) => [prefix.as_slice(), b"\xff\xfe", suffix].concat(),
            Fault::ErrorAtEvent { error, .. } if self.is_lines() => {
                format!("{}\n", json!({ "error": error })).into_bytes()
            }
            Fault::ErrorAtEvent { error, .. } => {
                format!("data: {}\n\n", json!({ "error": error })).into_bytes()
            }
            // The others belong to no event, or end it all.
            _ => return Step::Close,
        };
        Step::Write { bytes, event: true }
    }
}

impl Filler {
    /// Of an answer that is no stream.
    fn json() -> Self {
        Self { prefix: br#"{"id":""#.to_vec(), suffix: br#""}"#.to_vec() }
    }

    /// An event that holds an empty text once, open where its text belongs; `key` is what stands
    /// before it.
    pub(crate) fn behind(key: &str, event: &[u8]) -> Self {
        let at = event.windows(key.len()).position(|window| window == key.as_bytes());
        let (prefix, suffix) = event.split_at(at.map_or(0, |at| at + key.len()));
        Self { prefix: prefix.to_vec(), suffix: suffix.to_vec() }
    }
}

impl Step {
    fn is_final(&self) -> bool {
        matches!(self, Self::Stall { .. } | Self::End | Self::Close | Self::Reset)
    }

    fn body_bytes(&self) -> u64 {
        match self {
            Self::Write { bytes, .. } => bytes.len() as u64,
            Self::Fill { filler, fill, .. } => {
                (filler.prefix.len() + filler.suffix.len()) as u64 + fill
            }
            _ => 0,
        }
    }

    /// The beginning of a step that writes more than `limit` bytes.
    fn shortened(self, limit: u64) -> Self {
        match self {
            Self::Write { mut bytes, .. } => {
                bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
                Self::Write { bytes, event: false }
            }
            Self::Fill { mut filler, fill, .. } => {
                filler.prefix.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
                let left = limit - filler.prefix.len() as u64;
                let left_of_suffix = left.saturating_sub(fill);
                filler.suffix.truncate(usize::try_from(left_of_suffix).unwrap_or(usize::MAX));
                Self::Fill { filler, fill: fill.min(left), event: false }
            }
            other => other,
        }
    }
}

/// The steps that write the first `limit` bytes, and a close.
fn cut(steps: Vec<Step>, limit: u64) -> Vec<Step> {
    let mut left = limit;
    let mut kept = Vec::new();
    for step in steps {
        let size = step.body_bytes();
        if size > left {
            if left > 0 {
                kept.push(step.shortened(left));
            }
            break;
        }
        left -= size;
        kept.push(step);
        if left == 0 && size > 0 {
            break;
        }
    }
    kept.push(Step::Close);
    kept
}

const SSE: &str = "text/event-stream";
const LINES: &str = "application/x-ndjson";

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn answer(faults: Vec<Fault>) -> Answer {
        Answer {
            status: 200,
            headers: Vec::new(),
            streamed: true,
            events: vec![b"one".to_vec(), b"two".to_vec()],
            filler: Filler { prefix: b"<".to_vec(), suffix: b">".to_vec() },
            faults,
        }
    }

    fn head() -> Step {
        let chunked = ("transfer-encoding".to_owned(), "chunked".to_owned());
        Step::Head { status: 200, headers: vec![chunked] }
    }

    fn write(text: &[u8]) -> Step {
        Step::Write { bytes: text.to_vec(), event: true }
    }

    fn part(text: &[u8]) -> Step {
        Step::Write { bytes: text.to_vec(), event: false }
    }

    #[test]
    fn without_faults_the_events_are_written() {
        assert_eq!(answer(vec![]).steps(), [head(), write(b"one"), write(b"two"), Step::End]);
    }

    #[test]
    fn a_cut_falls_on_the_byte() {
        let at = |n| answer(vec![Fault::CutAtByte(n)]).steps();
        assert_eq!(at(0), [head(), Step::Close]);
        assert_eq!(at(2), [head(), part(b"on"), Step::Close]);
        assert_eq!(at(3), [head(), write(b"one"), Step::Close]);
        assert_eq!(at(4), [head(), write(b"one"), part(b"t"), Step::Close]);
        assert_eq!(at(99), [head(), write(b"one"), write(b"two"), Step::Close]);
    }

    #[test]
    fn an_end_falls_on_the_event() {
        let at = |event| answer(vec![Fault::EndAtEvent(event)]).steps();
        assert_eq!(at(0), [head(), Step::End]);
        assert_eq!(at(1), [head(), write(b"one"), Step::End]);
        assert_eq!(at(99), [head(), write(b"one"), write(b"two"), Step::End]);
        let error = Fault::GarbageAtEvent { event: 1, bytes: b"oops".to_vec() };
        let last_words = answer(vec![error, Fault::EndAtEvent(1)]).steps();
        assert_eq!(last_words, [head(), write(b"one"), write(b"oops"), Step::End]);
    }

    #[test]
    fn a_length_is_promised_for_the_whole() {
        let whole = Answer { streamed: false, ..answer(vec![Fault::CutAtByte(1)]) };
        let length = ("content-length".to_owned(), "6".to_owned());
        let head = Step::Head { status: 200, headers: vec![length] };
        assert_eq!(whole.steps(), [head, part(b"o"), Step::Close]);

        let ended = Answer { streamed: false, ..answer(vec![Fault::EndAtEvent(1)]) };
        let length = ("content-length".to_owned(), "3".to_owned());
        let head = Step::Head { status: 200, headers: vec![length] };
        assert_eq!(ended.steps(), [head, write(b"one"), Step::End]);
    }

    #[test]
    fn faults_compose() {
        let faults = vec![
            Fault::DelayHead(5 * MS),
            Fault::DelayEvents(MS),
            Fault::InvalidUtf8AtEvent(1),
            Fault::MalformedJsonAtEvent(1),
            Fault::ErrorAtEvent { event: 1, error: json!("x") },
            Fault::HugeEvent { event: 2, bytes: 10 },
            Fault::StallAtEvent { event: 7, ping_every: Some(MS) },
        ];
        let steps = [
            Step::Wait(5 * MS),
            head(),
            Step::Wait(MS),
            write(b"one"),
            write(b"<\xff\xfe>"),
            write(b"<\n\n"),
            write(b"data: {\"error\":\"x\"}\n\n"),
            Step::Wait(MS),
            write(b"two"),
            Step::Fill { filler: answer(vec![]).filler, fill: 8, event: true },
            Step::Stall { ping: Some((MS, b": ping\n\n".to_vec())) },
        ];
        assert_eq!(answer(faults).steps(), steps);
    }

    #[test]
    fn a_stall_pings_as_the_api_does() {
        let ping = b"event: ping\ndata: {}\n\n".to_vec();
        let stall = Fault::StallAtEvent { event: 0, ping_every: Some(MS) };
        let stalled = Answer { events: vec![ping.clone()], ..answer(vec![stall]) };
        assert_eq!(stalled.steps(), [head(), Step::Stall { ping: Some((MS, ping)) }]);
    }

    #[test]
    fn a_cut_may_fall_inside_a_huge_event() {
        let at = |n| {
            let faults = vec![Fault::HugeEvent { event: 0, bytes: 10 }, Fault::CutAtByte(n)];
            answer(faults).steps().swap_remove(1)
        };
        let fill = |prefix: &str, fill, suffix: &str, event| {
            let filler = Filler { prefix: prefix.into(), suffix: suffix.into() };
            Step::Fill { filler, fill, event }
        };
        assert_eq!(at(1), fill("<", 0, "", false));
        assert_eq!(at(4), fill("<", 3, "", false));
        assert_eq!(at(9), fill("<", 8, "", false));
        assert_eq!(at(10), fill("<", 8, ">", true));
    }

    #[test]
    fn nothing_follows_silence_or_a_reset() {
        let stall = Step::Stall { ping: None };
        assert_eq!(answer(vec![Fault::Mute]).steps(), [stall]);
        assert_eq!(answer(vec![Fault::Reset]).steps(), [Step::Reset]);
        assert_eq!(answer(vec![Fault::CutAtEvent(0)]).steps(), [head(), Step::Close]);
    }
}
