//! [`Tagged`]: calls with a tag for the tool and one for each parameter.
//!
//! ```text
//!  <tool:a>                        <function=a>                 <invoke name="a">
//!  <param:x>1</param:x>            <parameter=x>1</parameter>   <parameter name="x">1</parameter>
//!  </tool:a>                       </function>                  </invoke>
//! ```
//!
//! The second may stand in `<tool_call>`, the third in `<function_calls>`; the third may have a
//! namespace. A value is all text up to its closing tag, so whatever it holds is no call.

use super::block::{Found, Progress};
use super::cursor::{Cursor, Halt, Read};
use super::opening::{Known, opening};
use super::typed::{Parameter, Written, arguments};
use crate::dialect::escape::unescape_value;

/// A call with a tag for each parameter.
#[derive(Debug, Clone)]
pub(super) struct Tagged {
    tags: Tags,
    name: String,
    is_offered: bool,
    at: usize,
    /// The parameter that is open.
    open: Option<Open>,
    parameters: Vec<Parameter>,
    /// Whether text stands between the parameters.
    has_stray: bool,
    is_wrapped: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Tags {
    Xml,
    Function,
    /// With a namespace and its colon, or nothing.
    Invoke(String),
}

#[derive(Debug, Clone)]
struct Open {
    name: String,
    start: usize,
    /// The same tag again says that this one was never closed.
    opener: String,
    closer: String,
}

impl Tagged {
    pub(super) fn open_xml(text: &str, known: &Known) -> Read<Self> {
        let mut cursor = Cursor::new(text, 0);
        cursor.literal("<tool:")?;
        let name = cursor.name()?;
        cursor.blank()?;
        cursor.literal(">")?;
        Ok(Self::new(Tags::Xml, name, false, cursor, known))
    }

    pub(super) fn open_function(text: &str, known: &Known) -> Read<Self> {
        let mut cursor = Cursor::new(text, 0);
        let is_wrapped = cursor.optional("<tool_call>")?;
        if is_wrapped {
            cursor.blank()?;
        }
        cursor.literal("<function=")?;
        let name = cursor.name()?;
        cursor.literal(">")?;
        Self::new(Tags::Function, name, is_wrapped, cursor, known).if_offered()
    }

    pub(super) fn open_invoke(text: &str, known: &Known) -> Read<Self> {
        let mut cursor = Cursor::new(text, 0);
        cursor.literal("<")?;
        let namespace = namespace(&mut cursor)?;
        let is_wrapped = cursor.optional("function_calls>")?;
        if is_wrapped {
            cursor.blank()?;
            cursor.literal("<")?;
            cursor.literal(namespace)?;
        }
        cursor.literal("invoke")?;
        let name = attribute_name(&mut cursor)?;
        cursor.blank()?;
        cursor.literal(">")?;
        Self::new(Tags::Invoke(namespace.to_owned()), name, is_wrapped, cursor, known).if_offered()
    }

    fn new(tags: Tags, name: &str, is_wrapped: bool, cursor: Cursor<'_>, known: &Known) -> Self {
        Self {
            tags,
            name: name.to_owned(),
            is_offered: known.tools.has(name),
            at: cursor.at(),
            open: None,
            parameters: Vec::new(),
            has_stray: false,
            is_wrapped,
        }
    }

    fn if_offered(self) -> Read<Self> {
        if self.is_offered { Ok(self) } else { Err(Halt::No) }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn name(&self) -> Option<&str> {
        (self.is_offered && !self.has_stray).then_some(&self.name)
    }

    pub(super) fn wrapper(&self) -> Option<String> {
        let closer = match &self.tags {
            Tags::Invoke(namespace) => format!("</{namespace}function_calls>"),
            Tags::Xml | Tags::Function => "</tool_call>".to_owned(),
        };
        self.is_wrapped.then_some(closer)
    }

    pub(super) fn is_leak(&self) -> bool {
        self.tags != Tags::Xml
    }

    pub(super) fn advance(&mut self, text: &str, known: &Known) -> Progress {
        loop {
            if let Some(open) = &self.open {
                let end = match open.find_end(text, self.at) {
                    Ok(end) => end,
                    Err((at, halt)) => {
                        self.at = at;
                        return match halt {
                            Halt::More => Progress::Open,
                            Halt::No => Progress::Failed,
                        };
                    }
                };
                self.at = end + open.closer.len();
                let value = unwrapped(&text[open.start..end]);
                let value = match self.tags {
                    Tags::Xml => unescape_value(value),
                    _ => value.to_owned(),
                };
                let (name, written) = (open.name.clone(), Written::Text(value));
                self.parameters.push(Parameter { name, written });
                self.open = None;
            }
            let left = text[self.at..].trim_ascii_start();
            self.at = text.len() - left.len();
            if self.is_offered && !left.is_empty() && !left.starts_with(MARKS) {
                self.has_stray = true;
                self.at += left.find(MARKS).unwrap_or(left.len());
            }
            match self.next_tag(text) {
                Ok(Some(open)) => {
                    self.at = open.start;
                    self.open = Some(open);
                }
                Ok(None) => return Progress::Whole(self.at, vec![self.found(text, known)]),
                Err(Halt::More) => return Progress::Open,
                Err(Halt::No) if !self.is_offered => return Progress::Failed,
                // The next call begins while this one is not closed.
                Err(Halt::No) => match opening(&text[self.at..], false, known) {
                    Ok(_) => return Progress::Failed,
                    Err(Halt::More) => return Progress::Open,
                    Err(Halt::No) => {
                        self.has_stray = true;
                        self.at += 1;
                    }
                },
            }
        }
    }

    /// The parameter that opens here, or nothing where the call closes.
    fn next_tag(&mut self, text: &str) -> Read<Option<Open>> {
        let mut cursor = Cursor::new(text, self.at);
        let closed = match &self.tags {
            Tags::Xml => cursor.literal(&format!("</tool:{}>", self.name)),
            Tags::Function => cursor.literal("</function>"),
            Tags::Invoke(namespace) => cursor.literal(&format!("</{namespace}invoke>")),
        };
        match closed {
            Ok(()) => {
                self.at = cursor.at();
                return Ok(None);
            }
            Err(Halt::More) => return Err(Halt::More),
            Err(Halt::No) => {}
        }
        let (name, closer) = match &self.tags {
            Tags::Xml => {
                cursor.literal("<param:")?;
                let name = cursor.name()?;
                cursor.literal(">")?;
                (name, format!("</param:{name}>"))
            }
            Tags::Function => {
                cursor.literal("<parameter=")?;
                let name = cursor.name()?;
                cursor.literal(">")?;
                (name, "</parameter>".to_owned())
            }
            Tags::Invoke(namespace) => {
                cursor.literal("<")?;
                cursor.literal(namespace)?;
                cursor.literal("parameter")?;
                let name = attribute_name(&mut cursor)?;
                // Some write the type of the value behind the name.
                cursor.up_to('>')?;
                (name, format!("</{namespace}parameter>"))
            }
        };
        let (name, start) = (name.to_owned(), cursor.at());
        let opener = text[self.at..start].to_owned();
        Ok(Some(Open { name, start, opener, closer }))
    }

    fn found(&mut self, text: &str, known: &Known) -> Found {
        let name = std::mem::take(&mut self.name);
        let arguments = match known.tools.schema(&name) {
            _ if self.has_stray => text[..self.at].to_owned(),
            schema => {
                let parameters = std::mem::take(&mut self.parameters);
                arguments(parameters, schema.unwrap_or(&serde_json::Value::Null)).to_string()
            }
        };
        Found { name, arguments }
    }
}

impl Open {
    /// Where the value ends, or up to where there is no end and whether one can come.
    fn find_end(&self, text: &str, mut at: usize) -> Result<usize, (usize, Halt)> {
        while let Some(found) = text[at..].find('<') {
            at += found;
            let tag = &text[at..];
            if tag.starts_with(&self.closer) {
                return Ok(at);
            }
            if tag.starts_with(&self.opener) {
                return Err((at, Halt::No));
            }
            if self.closer.starts_with(tag) || self.opener.starts_with(tag) {
                return Err((at, Halt::More));
            }
            at += 1;
        }
        Err((text.len(), Halt::More))
    }
}

/// A value without the line breaks that set it apart from its tags.
fn unwrapped(value: &str) -> &str {
    let Some(inner) = value.strip_prefix("\r\n").or_else(|| value.strip_prefix('\n')) else {
        return value;
    };
    inner.strip_suffix("\r\n").or_else(|| inner.strip_suffix('\n')).unwrap_or(inner)
}

fn namespace<'a>(cursor: &mut Cursor<'a>) -> Read<&'a str> {
    let rest = cursor.rest();
    let name = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
    match rest.as_bytes().get(name) {
        Some(b':') if name > 0 => {
            let namespace = &rest[..=name];
            cursor.literal(namespace)?;
            Ok(namespace)
        }
        None if name <= MAX_NAMESPACE => Err(Halt::More),
        _ => Ok(""),
    }
}

fn attribute_name<'a>(cursor: &mut Cursor<'a>) -> Read<&'a str> {
    cursor.literal(" name=")?;
    cursor.quoted()
}

/// What tags, of this call or of the next, begin with.
const MARKS: [char; 2] = ['<', '['];
const MAX_NAMESPACE: usize = 32;
