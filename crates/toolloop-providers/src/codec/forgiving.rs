//! [`Text`]: a string of an answer, borrowed where it can be and absent where it is none.
//!
//! Servers that speak an API send null, a number or an object where its documents say a string.
//! [`FromJson`] says what a type makes of each; by default, nothing.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A string; empty where there is none.
#[derive(Default)]
pub(in crate::codec) struct Text<'a>(pub(in crate::codec) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Forgiving::default())
    }
}

impl<'a> FromJson<'a> for Text<'a> {
    fn from_text(text: Cow<'a, str>) -> Self {
        Self(text)
    }
}

/// What can be made of a JSON value that should be a string.
pub(in crate::codec) trait FromJson<'a>: Default {
    fn from_text(text: Cow<'a, str>) -> Self;

    fn from_object<A: MapAccess<'a>>(mut object: A) -> Result<Self, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    fn from_list<A: SeqAccess<'a>>(mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

/// Takes the strings and whatever else the type can be made from; the rest counts as absent.
pub(in crate::codec) struct Forgiving<T>(PhantomData<T>);

impl<T> Default for Forgiving<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<'de, T: FromJson<'de>> Visitor<'de> for Forgiving<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<T, E> {
        Ok(T::from_text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::from_text(Cow::Owned(text.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<T, A::Error> {
        T::from_object(object)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::from_list(list)
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<T, E> {
        Ok(T::default())
    }
}
