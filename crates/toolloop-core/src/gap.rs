//! [`Gap`]: messages of a conversation that its request does not show.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::chat::ChatMessage;

/// Messages that are missing in a request, with or without a note that stands for them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Gap {
    /// The message of the request in front of which they are missing, or their note.
    at: usize,
    has_note: bool,
    messages: Vec<ChatMessage>,
}

impl Gap {
    /// Where the note stands.
    pub(crate) fn note(&self) -> Option<usize> {
        self.has_note.then_some(self.at)
    }

    /// What is missing.
    pub(crate) fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }
}

/// Takes the messages `shown`, which stood at `range` of the request, together with what was
/// missing among them before.
pub(crate) fn insert(
    gaps: &mut Vec<Gap>,
    range: Range<usize>,
    has_note: bool,
    shown: Vec<ChatMessage>,
) {
    let first = gaps.partition_point(|gap| gap.at < range.start);
    // What is missing right behind the range joins it.
    let joins = |gap: &Gap| gap.at < range.end || gap.at == range.end && !gap.has_note;
    let last = first + gaps[first..].partition_point(joins);
    let mut inner: Vec<Gap> = gaps.drain(first..last).collect();
    inner.iter_mut().for_each(|gap| gap.at -= range.start);
    let messages = fill(inner, shown);
    gaps.insert(first, Gap { at: range.start, has_note, messages });
    let removed = range.len() - usize::from(has_note);
    gaps[first + 1..].iter_mut().for_each(|gap| gap.at -= removed);
}

/// The messages with what is missing among them, without the notes.
pub(crate) fn fill(gaps: Vec<Gap>, messages: Vec<ChatMessage>) -> Vec<ChatMessage> {
    if gaps.is_empty() {
        return messages;
    }
    let hidden: usize = gaps.iter().map(|gap| gap.messages.len()).sum();
    let mut filled = Vec::with_capacity(messages.len() + hidden);
    let mut gaps = gaps.into_iter().peekable();
    for (at, message) in messages.into_iter().enumerate() {
        let mut is_note = false;
        while let Some(gap) = gaps.next_if(|gap| gap.at == at) {
            is_note |= gap.has_note;
            filled.extend(gap.messages);
        }
        if !is_note {
            filled.push(message);
        }
    }
    filled.extend(gaps.flat_map(|gap| gap.messages));
    filled
}

/// Where in the whole conversation the gaps lie that end within its first `untouched` messages,
/// each with its note.
pub(crate) fn places(
    gaps: &[Gap],
    request: &[ChatMessage],
    untouched: usize,
) -> Vec<(Range<usize>, Option<ChatMessage>)> {
    let mut places = Vec::new();
    // How much further behind a message stands in the whole conversation than in the request.
    let mut ahead = 0;
    for gap in gaps {
        let begin = gap.at + ahead;
        let end = begin + gap.messages.len();
        ahead += gap.messages.len() - usize::from(gap.has_note);
        if end <= untouched {
            let note = gap.note().and_then(|at| request.get(at).cloned());
            places.push((begin..end, note));
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A conversation of which parts are hidden, each message a letter, a note in capitals.
    struct Hiding {
        request: Vec<ChatMessage>,
        gaps: Vec<Gap>,
    }

    fn letters(text: &str) -> Vec<ChatMessage> {
        text.chars().map(|letter| ChatMessage::user(letter.to_string())).collect()
    }

    fn text(messages: &[ChatMessage]) -> String {
        let texts = messages.iter().map(|message| match &message.content[0] {
            crate::chat::ContentBlock::Text(text) => text.as_str(),
            other => panic!("no text: {other:?}"),
        });
        texts.collect()
    }

    impl Hiding {
        fn new(whole: &str) -> Self {
            Self { request: letters(whole), gaps: Vec::new() }
        }

        fn hide(mut self, range: Range<usize>, note: &str) -> Self {
            let shown = self.request.splice(range.clone(), letters(note)).collect();
            insert(&mut self.gaps, range, !note.is_empty(), shown);
            self
        }

        fn shows(self, request: &str, whole: &str) -> Self {
            assert_eq!(text(&self.request), request);
            assert_eq!(text(&fill(self.gaps.clone(), self.request.clone())), whole);
            self
        }

        fn places(&self, untouched: usize) -> Vec<(Range<usize>, String)> {
            let places = places(&self.gaps, &self.request, untouched);
            places
                .into_iter()
                .map(|(range, note)| (range, note.map(|note| text(&[note])).unwrap_or_default()))
                .collect()
        }
    }

    #[test]
    fn what_is_hidden_again_and_again_comes_back_in_order() {
        let hiding = Hiding::new("abcdefgh")
            .hide(5..6, "")
            .shows("abcdegh", "abcdefgh")
            .hide(1..3, "X")
            .shows("aXdegh", "abcdefgh")
            .hide(2..3, "")
            .shows("aXegh", "abcdefgh");
        assert_eq!(hiding.gaps.len(), 3);
        // The note is hidden with what it stands for, and what is missing behind joins.
        let hiding = hiding.hide(1..3, "Y").shows("aYgh", "abcdefgh");
        assert_eq!(hiding.gaps.len(), 1);
        assert_eq!(hiding.places(8), [(1..6, "Y".into())]);
        assert_eq!(hiding.places(5), []);
    }

    #[test]
    fn a_gap_before_a_note_and_one_at_the_end_stay_where_they_are() {
        let hiding = Hiding::new("abcdef")
            .hide(2..4, "X")
            .hide(1..2, "")
            .hide(3..4, "")
            .shows("aXe", "abcdef");
        assert_eq!(hiding.places(6), [(1..2, "".into()), (2..4, "X".into()), (5..6, "".into())]);
        let hiding = hiding.hide(0..1, "Z").shows("ZXe", "abcdef");
        assert_eq!(hiding.places(6), [(0..2, "Z".into()), (2..4, "X".into()), (5..6, "".into())]);
    }
}
