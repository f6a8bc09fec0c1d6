//! [`Text`]: a string of an answer, borrowed where it can be and absent where it is none.
//!
//! Servers that speak an API send null, a number or an object where its documents say a string.
//! [`FromJson`] says what a type makes of each; by default, nothing. [`count`] is the same for a
//! number, [`object`] for one, [`any`] for what else has parts.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

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

/// A number of tokens or a position; none where it is no such number.
pub(in crate::codec) fn count<'de, D, N>(deserializer: D) -> Result<Option<N>, D::Error>
where
    D: Deserializer<'de>,
    N: TryFrom<u64>,
{
    let Count(count) = deserializer.deserialize_any(Forgiving::default())?;
    Ok(count.and_then(|count| N::try_from(count).ok()))
}

/// An object whose members forgive; none where it is something else.
pub(in crate::codec) fn object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let Object(object) = deserializer.deserialize_any(Forgiving::default())?;
    Ok(object)
}

/// What has parts; none where it or a part is something else. It is read twice, which only what
/// comes once in a reply is worth.
pub(in crate::codec) fn any<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let raw = <&'de RawValue>::deserialize(deserializer)?.get();
    Ok(serde_json::from_str(raw).ok().flatten())
}

struct Object<T>(Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'a, T: Deserialize<'a>> FromJson<'a> for Object<T> {
    fn from_text(_: Cow<'a, str>) -> Self {
        Self::default()
    }

    fn from_object<A: MapAccess<'a>>(object: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(object)).map(|object| Self(Some(object)))
    }
}

#[derive(Default)]
struct Count(Option<u64>);

impl<'a> FromJson<'a> for Count {
    fn from_text(text: Cow<'a, str>) -> Self {
        Self(text.parse().ok())
    }

    fn from_number(number: f64) -> Self {
        // As far as a float can say it; the cast ends at the bounds.
        Self((number >= 0.0).then_some(number as u64))
    }

    fn from_count(count: u64) -> Self {
        Self(Some(count))
    }
}

/// What can be made of a JSON value that should be something else.
pub(in crate::codec) trait FromJson<'a>: Default {
    fn from_text(text: Cow<'a, str>) -> Self;

    fn from_number(_: f64) -> Self {
        Self::default()
    }

    fn from_count(_: u64) -> Self {
        Self::default()
    }

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
        // Only negative ones come here.
        Ok(T::default())
    }

    fn visit_u64<E>(self, count: u64) -> Result<T, E> {
        Ok(T::from_count(count))
    }

    fn visit_f64<E>(self, number: f64) -> Result<T, E> {
        Ok(T::from_number(number))
    }
}
