//! [`IdRule`]: which ids of calls an API takes, and a legal id for every other.
//!
//! A conversation may come from another provider, whose ids this one refuses. A call and its
//! result are encoded apart, so the legal id depends on the id alone.

use std::borrow::Cow;

/// Which ids an API takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IdRule {
    /// Most bytes.
    pub(crate) max: usize,
    /// Whether a byte may stand in an id.
    pub(crate) allows: fn(u8) -> bool,
}

impl IdRule {
    /// The id itself if the API takes it, else one that is as good as unique to it.
    pub(crate) fn legal(self, id: &str) -> Cow<'_, str> {
        if !id.is_empty() && id.len() <= self.max && id.bytes().all(self.allows) {
            return Cow::Borrowed(id);
        }
        let hash = format!("{:016x}", fnv1a(id.as_bytes()));
        let room = self.max.saturating_sub(hash.len());
        let readable = id.bytes().filter(|byte| byte.is_ascii() && (self.allows)(*byte)).take(room);
        Cow::Owned(readable.map(char::from).chain(hash.chars()).take(self.max).collect())
    }
}

/// The FNV-1a hash: the same on every machine and in every version, as stored ids must be.
pub(in crate::codec) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: IdRule = IdRule { max: 24, allows: |byte| byte.is_ascii_alphanumeric() };

    #[test]
    fn a_legal_id_is_kept() {
        assert_eq!(RULE.legal("call1"), "call1");
    }

    #[test]
    fn every_other_gets_a_legal_one_of_its_own() {
        let long = "x".repeat(40);
        let ids = ["", "call|1", "call/1", "ü", &long];
        let legal: Vec<_> = ids.iter().map(|id| RULE.legal(id).into_owned()).collect();
        for (at, id) in legal.iter().enumerate() {
            assert!(!id.is_empty() && id.len() <= 24 && id.bytes().all(RULE.allows), "{id}");
            assert!(!legal[..at].contains(id), "{legal:?}");
        }
    }
}
