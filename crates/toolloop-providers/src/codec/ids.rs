//! [`IdRule`]: which ids of calls and names of tools an API takes, and a legal one for every other.
//!
//! A conversation may come from another provider, whose ids this one refuses. A call and its
//! result are encoded apart, so the legal id depends on the id alone.

use std::borrow::Cow;

/// Which ids or names an API takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IdRule {
    /// Most bytes.
    pub(crate) max: usize,
    /// Whether a byte may stand in an id.
    pub(crate) allows: fn(u8) -> bool,
    /// Whether an allowed byte may be the first. An underscore may, where another may not.
    pub(crate) begins: fn(u8) -> bool,
}

impl IdRule {
    pub(crate) const fn new(max: usize, allows: fn(u8) -> bool) -> Self {
        Self { max, allows, begins: |_| true }
    }

    /// The id itself if the API takes it, else one that is as good as unique to it.
    pub(crate) fn legal(self, id: &str) -> Cow<'_, str> {
        let begins = id.bytes().next().is_some_and(self.begins);
        if begins && id.len() <= self.max && id.bytes().all(self.allows) {
            return Cow::Borrowed(id);
        }
        let hash = format!("{:016x}", fnv1a(id.as_bytes()));
        let room = self.max.saturating_sub(hash.len());
        let readable = id.bytes().filter(|byte| byte.is_ascii() && (self.allows)(*byte)).take(room);
        let mut legal: String = readable.map(char::from).chain(hash.chars()).collect();
        if !legal.bytes().next().is_some_and(self.begins) {
            legal.insert(0, '_');
        }
        legal.truncate(self.max);
        Cow::Owned(legal)
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

    const RULE: IdRule = IdRule::new(24, |byte| byte.is_ascii_alphanumeric());

    #[test]
    fn a_legal_id_is_kept() {
        assert_eq!(RULE.legal("call1"), "call1");
    }

    #[test]
    fn the_first_byte_may_have_a_rule_of_its_own() {
        let rule = IdRule { begins: |byte| byte == b'_' || byte.is_ascii_alphabetic(), ..RULE };
        assert_eq!(rule.legal("a1"), "a1");
        for name in ["1a", "", "ü", "1.2.3"] {
            let legal = rule.legal(name);
            assert!(legal.len() <= 24 && !legal.starts_with(char::is_numeric), "{legal}");
        }
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
