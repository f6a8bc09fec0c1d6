//! [`RunId`]: the short name of a run.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

/// Four characters that are easy to read aloud and to type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunId([u8; 4]);

impl RunId {
    /// A new id, at random.
    pub(crate) fn random() -> Self {
        // The standard library seeds its hash maps from the system's randomness; twenty bits of
        // that are all an id needs, and no crate for it.
        Self::from_bits(RandomState::new().hash_one(std::process::id()))
    }

    fn from_bits(bits: u64) -> Self {
        Self([0, 5, 10, 15].map(|shift| ALPHABET[(bits >> shift & 31) as usize]))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|&byte| fmt::Write::write_char(f, byte.into()))
    }
}

/// Base 32 without i, l, o and u, which are misread.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_pattern_has_a_readable_id() {
        assert_eq!(RunId::from_bits(0).to_string(), "0000");
        assert_eq!(RunId::from_bits(u64::MAX).to_string(), "zzzz");
        assert_eq!(RunId::from_bits(1 | 10 << 5 | 31 << 10).to_string(), "1az0");
    }
}
