//! [`EncodedMessages`]: what a codec has made of a run's messages, kept for the next request.
//!
//! A run sends its conversation again with every model call, a little longer each time. Encoding
//! it anew, or only copying it, would cost more than everything else a run does. So the body of
//! the last request travels with the params: a codec writes the next one over its end, and whoever
//! changes a message cuts it back to there. The request that is under way shares the bytes.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use crate::chat::ChatMessage;
use crate::checked::Checked;
use crate::transcript;

/// What is known of messages that were sent before: their bytes, and that they keep the grammar.
///
/// Nothing is kept unless the owner of the params vouches for cutting back what changes; a run
/// does, and a clone does not. So params that a program makes and edits are always encoded whole.
#[derive(Default)]
pub struct EncodedMessages(Option<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    encoded: Encoded,
    checked: Checked,
}

impl EncodedMessages {
    /// Keeps what is made of messages from now on: the owner vouches for
    /// [`cut_back`](Self::cut_back).
    pub(crate) fn keep(&mut self) {
        self.0.get_or_insert_default();
    }

    /// Forgets what was made of the message at `first` and of those behind it.
    pub(crate) fn cut_back(&mut self, first: usize) {
        let Some(kept) = &mut self.0 else { return };
        let kept = kept.get_mut().unwrap_or_else(PoisonError::into_inner);
        kept.encoded.cut_back(first);
        kept.checked.cut_back(first);
    }

    /// Whether these messages, whose bytes these are, keep the grammar of conversations. What was
    /// found to keep it before is not looked at again.
    pub fn keep_grammar(&self, messages: &[ChatMessage]) -> bool {
        match &self.0 {
            Some(kept) => {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.checked.keeps_grammar(messages)
            }
            None => transcript::keeps_grammar(messages),
        }
    }

    /// Has a body written: `write` puts what is not there yet behind what is.
    ///
    /// `codec` is the codec with all that the bytes of settled messages depend on besides them.
    ///
    /// # Errors
    /// What `write` fails with; what it has settled until then stays.
    pub fn write<E>(
        &self,
        codec: impl Hash,
        write: impl FnOnce(&mut Encoded) -> Result<(), E>,
    ) -> Result<Arc<Vec<u8>>, E> {
        let Some(kept) = &self.0 else {
            let mut encoded = Encoded::default();
            write(&mut encoded)?;
            return Ok(encoded.bytes);
        };
        let mut hasher = DefaultHasher::new();
        codec.hash(&mut hasher);
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let encoded = &mut kept.encoded;
        encoded.open(hasher.finish());
        write(encoded)?;
        encoded.give_room_back();
        Ok(Arc::clone(&encoded.bytes))
    }
}

/// A body under way: the head, the messages that were settled before, what is written now.
///
/// A message is settled once no later one can change its bytes.
#[derive(Default)]
pub struct Encoded {
    /// Hash of the codec that made the bytes; another starts anew.
    codec: u64,
    /// Shared with requests that are under way.
    bytes: Arc<Vec<u8>>,
    /// Bytes in front of the messages.
    head: usize,
    /// What the codec must know of settled messages.
    notes: Vec<u64>,
    /// How far the messages were settled each time.
    marks: Vec<Mark>,
}

#[derive(Clone, Copy, Default)]
struct Mark {
    messages: usize,
    /// Their bytes, without the head.
    bytes: usize,
    notes: usize,
}

impl Encoded {
    /// How many messages are settled.
    pub fn settled(&self) -> usize {
        self.last().messages
    }

    /// What the codec has noted of them.
    pub fn notes(&self) -> &[u64] {
        &self.notes
    }

    /// Makes room for so many bytes more.
    pub fn reserve(&mut self, additional: usize) {
        let bytes = self.bytes();
        if bytes.capacity() - bytes.len() < additional {
            // An eighth at least: a buffer that doubles would hold much that is empty, one that
            // grows by a message would be copied with each.
            bytes.reserve_exact(additional.max(bytes.len() / 8));
        }
    }

    /// Writes what stands in front of the messages; before any of them is written.
    ///
    /// # Errors
    /// What `write` fails with.
    pub fn write_head<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let before = self.head;
        let bytes = self.bytes();
        if before == 0 {
            write(bytes)?;
            self.head = self.bytes.len();
            return Ok(());
        }
        // Mostly it is the same again.
        let mut head = Vec::with_capacity(before);
        write(&mut head)?;
        if head != bytes[..before] {
            self.head = head.len();
            self.bytes().splice(..before, head);
        }
        Ok(())
    }

    /// The bytes so far, to write behind them.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        // Nobody else has them since they were opened.
        Arc::make_mut(&mut self.bytes)
    }

    /// What is written so far is what the first `messages` come to, whatever follows them.
    pub fn settle(&mut self, messages: usize, notes: impl IntoIterator<Item = u64>) {
        if messages > self.settled() {
            self.notes.extend(notes);
            let (bytes, notes) = (self.bytes.len() - self.head, self.notes.len());
            self.marks.push(Mark { messages, bytes, notes });
        }
    }

    /// Begins again with the first message.
    pub fn start_over(&mut self) {
        self.cut_back(0);
        self.truncate();
    }

    fn last(&self) -> Mark {
        self.marks.last().copied().unwrap_or_default()
    }

    fn cut_back(&mut self, first: usize) {
        while self.marks.last().is_some_and(|mark| mark.messages > first) {
            self.marks.pop();
        }
        self.notes.truncate(self.last().notes);
    }

    fn open(&mut self, codec: u64) {
        if self.codec != codec {
            *self = Self { codec, ..Self::default() };
        }
        self.truncate();
    }

    /// Takes away what is not settled.
    fn truncate(&mut self) {
        let end = self.head + self.last().bytes;
        match Arc::get_mut(&mut self.bytes) {
            Some(bytes) => bytes.truncate(end),
            // A request is under way with them.
            None => self.bytes = Arc::new(self.bytes[..end].to_vec()),
        }
    }

    /// Many runs at once would hold much that is empty.
    fn give_room_back(&mut self) {
        let bytes = self.bytes();
        let needed = bytes.len() + bytes.len() / 8;
        if bytes.capacity() > needed + bytes.len() / 8 + 1024 {
            bytes.shrink_to(needed);
        }
    }
}

/// A clone keeps nothing: its messages may be changed by anybody.
impl Clone for EncodedMessages {
    fn clone(&self) -> Self {
        Self(None)
    }
}

/// Always equal: what is kept changes no request.
impl PartialEq for EncodedMessages {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for EncodedMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncodedMessages")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes messages as their numbers, all but the last of which are settled; gives how many
    /// were, and the body.
    fn encode(kept: &EncodedMessages, head: &str, messages: usize) -> (usize, Arc<Vec<u8>>) {
        let mut settled = 0;
        let body = kept.write("codec", |encoded| {
            settled = encoded.settled();
            encoded.write_head(|bytes| {
                bytes.extend(head.bytes());
                Ok(())
            })?;
            for message in settled..messages {
                if message + 1 == messages {
                    encoded.settle(message, [message as u64]);
                }
                encoded.bytes().extend(message.to_string().bytes());
            }
            encoded.bytes().push(b'.');
            Ok::<_, ()>(())
        });
        (settled, body.unwrap())
    }

    fn text((settled, body): (usize, Arc<Vec<u8>>)) -> (usize, String) {
        (settled, String::from_utf8(body.to_vec()).unwrap())
    }

    fn keeping() -> EncodedMessages {
        let mut kept = EncodedMessages::default();
        kept.keep();
        kept
    }

    #[test]
    fn only_what_is_not_settled_is_encoded() {
        let kept = keeping();
        assert_eq!(text(encode(&kept, "h", 2)), (0, "h01.".into()));
        assert_eq!(text(encode(&kept, "h", 5)), (1, "h01234.".into()));
        assert_eq!(text(encode(&kept, "h", 5)), (4, "h01234.".into()));
        assert_eq!(text(encode(&kept.clone(), "h", 5)), (0, "h01234.".into()));
        assert_eq!(text(encode(&EncodedMessages::default(), "h", 5)), (0, "h01234.".into()));
    }

    #[test]
    fn a_change_cuts_back_to_the_mark_before_it() {
        let mut kept = keeping();
        encode(&kept, "h", 2);
        encode(&kept, "h", 5);
        kept.cut_back(3);
        assert_eq!(text(encode(&kept, "h", 6)), (1, "h012345.".into()));
        kept.cut_back(0);
        assert_eq!(text(encode(&kept, "h", 1)), (0, "h0.".into()));
    }

    #[test]
    fn another_head_takes_the_place_of_the_one_before() {
        let kept = keeping();
        encode(&kept, "head", 3);
        assert_eq!(text(encode(&kept, "h", 3)), (2, "h012.".into()));
        assert_eq!(text(encode(&kept, "longer", 4)), (2, "longer0123.".into()));
    }

    #[test]
    fn a_request_under_way_keeps_its_bytes() {
        let kept = keeping();
        let first = encode(&kept, "h", 3);
        assert_eq!(text(encode(&kept, "x", 5)), (2, "x01234.".into()));
        assert_eq!(text(first), (0, "h012.".into()));
    }

    #[test]
    fn bytes_that_nobody_else_has_are_written_over() {
        let kept = keeping();
        let (_, body) = encode(&kept, "h", 3);
        let place = body.as_ptr();
        drop(body);
        assert_eq!(encode(&kept, "h", 3).1.as_ptr(), place);
    }

    #[test]
    fn notes_are_those_of_what_is_settled() {
        let mut kept = keeping();
        let notes = |kept: &EncodedMessages| {
            let mut notes = Vec::new();
            let _ = kept.write("codec", |encoded| {
                notes = encoded.notes().to_vec();
                Err(())
            });
            notes
        };
        encode(&kept, "h", 3);
        encode(&kept, "h", 5);
        assert_eq!(notes(&kept), [2, 4]);
        kept.cut_back(3);
        assert_eq!(notes(&kept), [2]);
    }

    #[test]
    fn another_codec_and_a_failure_leave_nothing_wrong() {
        let kept = keeping();
        encode(&kept, "h", 2);
        let failed = kept.write("codec", |encoded| {
            encoded.bytes().push(b'x');
            Err("no")
        });
        assert_eq!(failed, Err("no"));
        assert_eq!(text(encode(&kept, "h", 3)), (1, "h012.".into()));
        let other = kept.write("other", |encoded| {
            assert_eq!((encoded.settled(), encoded.notes()), (0, &[][..]));
            encoded.bytes().push(b'x');
            Ok::<_, ()>(())
        });
        assert_eq!(*other.unwrap(), b"x");
        assert_eq!(text(encode(&kept, "h", 3)), (0, "h012.".into()));
    }

    #[test]
    fn a_codec_may_start_over() {
        let kept = keeping();
        encode(&kept, "h", 3);
        let again = kept.write("codec", |encoded| {
            encoded.start_over();
            assert_eq!(encoded.settled(), 0);
            encoded.bytes().push(b'x');
            Ok::<_, ()>(())
        });
        assert_eq!(*again.unwrap(), b"hx");
    }
}
