//! [`Chunk`]: the part of a chunk that the loop needs, borrowed from the buffer.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};

#[derive(Deserialize)]
pub(crate) struct Chunk<'a> {
    #[serde(borrow)]
    pub(crate) choices: First<Choice<'a>>,
    pub(crate) usage: Option<Usage>,
}

#[derive(Deserialize)]
pub(crate) struct Choice<'a> {
    #[serde(borrow)]
    pub(crate) delta: Delta<'a>,
    #[serde(borrow)]
    pub(crate) finish_reason: Option<&'a str>,
}

#[derive(Deserialize)]
pub(crate) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(crate) content: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(crate) tool_calls: Option<First<CallDelta<'a>>>,
}

#[derive(Deserialize)]
pub(crate) struct CallDelta<'a> {
    pub(crate) index: usize,
    #[serde(borrow, default)]
    pub(crate) id: Option<&'a str>,
    #[serde(borrow)]
    pub(crate) function: FunctionDelta<'a>,
}

#[derive(Deserialize)]
pub(crate) struct FunctionDelta<'a> {
    #[serde(borrow, default)]
    pub(crate) name: Option<&'a str>,
    #[serde(borrow, default)]
    pub(crate) arguments: Option<Str<'a>>,
}

#[derive(Deserialize)]
pub(crate) struct Usage {
    pub(crate) completion_tokens: u64,
}

/// A newtype, so that an optional string borrows too.
#[derive(Deserialize)]
pub(crate) struct Str<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// The first element of a JSON array, without a Vec.
pub(crate) struct First<T>(pub(crate) Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FirstVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for FirstVisitor<T> {
            type Value = First<T>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<First<T>, A::Error> {
                let first = seq.next_element()?;
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(First(first))
            }
        }
        deserializer.deserialize_seq(FirstVisitor(PhantomData))
    }
}
