//! [`PictureUrl`]: a picture as OpenAI's APIs take it.

use serde::ser::{Serialize, Serializer};
use toolloop_core::ImageSource;

/// The address of a picture, or the picture itself as a `data:` address.
pub(in crate::codec) struct PictureUrl<'a> {
    pub(in crate::codec) media_type: &'a str,
    pub(in crate::codec) source: &'a ImageSource,
}

impl Serialize for PictureUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.source {
            ImageSource::Url(address) => serializer.serialize_str(address),
            ImageSource::Base64(data) => {
                serializer.collect_str(&format_args!("data:{};base64,{data}", self.media_type))
            }
        }
    }
}
