//! [`EncodedMessages`]: what a codec has made of a run's messages, kept for the next request.
//!
//! A run sends its conversation again with every model call, a little longer each time. Encoding
//! it anew would cost more than everything else a run does. So the bytes travel with the params:
//! a codec adds what is new, and whoever changes a message cuts them back to it.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

/// The bytes of messages that were encoded before.
///
/// Nothing is kept unless the owner of the params vouches for cutting back what changes; a run
/// does, and a clone does not. So params that a program makes and edits are always encoded whole.
#[derive(Default)]
pub struct EncodedMessages(Option<Mutex<Encoded>>);

/// The encoded beginning of a conversation.
#[derive(Debug, Default)]
struct Encoded {
    /// Hash of the codec that made the bytes; another starts anew.
    codec: u64,
    bytes: Vec<u8>,
    /// How many messages, in how many bytes, after each addition.
    additions: Vec<(usize, usize)>,
}

impl EncodedMessages {
    /// Keeps bytes from now on: the owner vouches for [`cut_back`](Self::cut_back).
    pub(crate) fn keep(&mut self) {
        self.0.get_or_insert_default();
    }

    /// Forgets what was made of the message at `first` and of those behind it.
    pub(crate) fn cut_back(&mut self, first: usize) {
        let Some(encoded) = &mut self.0 else { return };
        let encoded = encoded.get_mut().unwrap_or_else(PoisonError::into_inner);
        while encoded.additions.last().is_some_and(|(messages, _)| *messages > first) {
            encoded.additions.pop();
        }
        let bytes = encoded.additions.last().map_or(0, |(_, bytes)| *bytes);
        encoded.bytes.truncate(bytes);
    }

    /// Brings the bytes up to `messages` messages and reads them; `None` where nothing is kept.
    ///
    /// `add` gets the number of messages that are encoded already, and puts the others behind
    /// the bytes. `codec` is the codec with all that its bytes depend on besides.
    ///
    /// # Errors
    /// What `add` fails with; nothing is added then.
    pub fn extend<E, T>(
        &self,
        codec: impl Hash,
        messages: usize,
        add: impl FnOnce(usize, &mut Vec<u8>) -> Result<(), E>,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Option<Result<T, E>> {
        let mut encoded = self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        let mut hasher = DefaultHasher::new();
        codec.hash(&mut hasher);
        let codec = hasher.finish();
        if encoded.codec != codec {
            *encoded = Encoded { codec, ..Encoded::default() };
        }
        let (known, end) = encoded.additions.last().copied().unwrap_or_default();
        if known < messages {
            if let Err(error) = add(known, &mut encoded.bytes) {
                encoded.bytes.truncate(end);
                return Some(Err(error));
            }
            let end = encoded.bytes.len();
            encoded.additions.push((messages, end));
            // A buffer doubles when it grows; many runs at once would hold much that is empty.
            if encoded.bytes.capacity() > end + end / 4 + 1024 {
                encoded.bytes.shrink_to(end + end / 8);
            }
        }
        Some(Ok(read(&encoded.bytes)))
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

    /// Encodes messages as their numbers; says how many were known.
    fn encode(kept: &EncodedMessages, codec: &str, messages: usize) -> Option<(usize, String)> {
        let mut known = None;
        let add = |from: usize, bytes: &mut Vec<u8>| {
            known = Some(from);
            bytes.extend((from..messages).flat_map(|n| n.to_string().into_bytes()));
            Ok::<(), ()>(())
        };
        let read = |bytes: &[u8]| String::from_utf8(bytes.to_owned()).unwrap();
        let text = kept.extend(codec, messages, add, read)?.unwrap();
        Some((known.unwrap_or(messages), text))
    }

    #[test]
    fn only_what_is_new_is_encoded() {
        let mut kept = EncodedMessages::default();
        assert_eq!(encode(&kept, "a", 2), None);
        kept.keep();
        assert_eq!(encode(&kept, "a", 2), Some((0, "01".into())));
        assert_eq!(encode(&kept, "a", 5), Some((2, "01234".into())));
        assert_eq!(encode(&kept, "a", 5), Some((5, "01234".into())));
        assert_eq!(encode(&kept.clone(), "a", 5), None);
    }

    #[test]
    fn a_change_cuts_back_to_the_addition_before_it() {
        let mut kept = EncodedMessages::default();
        kept.keep();
        encode(&kept, "a", 2);
        encode(&kept, "a", 5);
        kept.cut_back(3);
        assert_eq!(encode(&kept, "a", 6), Some((2, "012345".into())));
        kept.cut_back(0);
        assert_eq!(encode(&kept, "a", 1), Some((0, "0".into())));
    }

    #[test]
    fn another_codec_and_a_failure_leave_nothing_wrong() {
        let mut kept = EncodedMessages::default();
        kept.keep();
        encode(&kept, "a", 2);
        let failed = kept.extend(
            "a",
            3,
            |_, bytes| {
                bytes.push(b'x');
                Err("no")
            },
            |_| (),
        );
        assert_eq!(failed, Some(Err("no")));
        assert_eq!(encode(&kept, "a", 3), Some((2, "012".into())));
        assert_eq!(encode(&kept, "b", 3), Some((0, "012".into())));
    }
}
