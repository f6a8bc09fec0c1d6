//! [`Tagged`]: calls with a tag for the tool and one for each parameter.
//!
//! ```text
//!  <tool:a>                        <function=a>                 <invoke name="a">
//!  <param:x>1</param:x>            <parameter=x>1</parameter>   <parameter name="x">1</parameter>
//!  </tool:a>                       </function>                  </invoke>
//! ```
//!
//! The second may stand in `<tool_call>`, the third in `<function_calls>`; the third may have a
//! namespace. `<tool:a/>` has no parameters, `<param:x/>` is empty. A value is all text up to its
//! closing tag, so whatever it holds is no call.

use super::block::{Found, Progress};
use super::cursor::{Cursor, Halt, Read};
use super::opening::{Known, Place, opening};
use super::typed::{Parameter, Written, arguments};
use crate::dialect::escape::unescape_value;

/// A call with a tag for each parameter.
#[derive(Debug, Clone)]
pub(super) struct Tagged {
    tags: Tags,
    name: String,
    is_offered: bool,
    /// Whether its opening tag closes it, too.
    is_empty: bool,
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

/// What begins between the parameters of a call.
enum Next {
    Parameter(Open),
    /// A parameter whose opening tag closes it, and where that ends.
    Empty(String, usize),
    /// The call is closed, up to there.
    Closed(usize),
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
        let name = end_of_tag(&mut cursor, name)?;
        Ok(Self::new(Tags::Xml, name, false, cursor, known))
    }

    pub(super) fn open_function(text: &str, known: &Known) -> Read<Self> {
        let mut cursor = Cursor::new(text, 0);
        let is_wrapped = cursor.optional("<tool_call>")?;
        if is_wrapped {
            cursor.blank()?;
        }
        cursor.literal("<function")?;
        let name = assigned(&mut cursor)?;
        let name = end_of_tag(&mut cursor, name)?;
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
        let name = assigned(&mut cursor)?;
        let name = end_of_tag(&mut cursor, name)?;
        Self::new(Tags::Invoke(namespace.to_owned()), name, is_wrapped, cursor, known).if_offered()
    }

    fn new(
        tags: Tags,
        (name, is_empty): (&str, bool),
        is_wrapped: bool,
        cursor: Cursor<'_>,
        known: &Known,
    ) -> Self {
        let found = match tags {
            Tags::Xml => known.tools.has(name).then_some(name),
            _ => known.tools.leaked(name),
        };
        Self {
            tags,
            name: found.unwrap_or(name).to_owned(),
            is_offered: found.is_some(),
            is_empty,
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
        if self.is_empty {
            return Progress::Whole(self.at, vec![self.found(text, known)]);
        }
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
                Ok(Next::Parameter(open)) => {
                    self.at = open.start;
                    self.open = Some(open);
                }
                Ok(Next::Empty(name, end)) => {
                    self.at = end;
                    let written = Written::Text(String::new());
                    self.parameters.push(Parameter { name, written });
                }
                Ok(Next::Closed(end)) => {
                    self.at = end;
                    return Progress::Whole(self.at, vec![self.found(text, known)]);
                }
                Err(Halt::More) => return Progress::Open,
                Err(Halt::No) if !self.is_offered => return Progress::Failed,
                // The next call begins while this one is not closed.
                Err(Halt::No) => match opening(&text[self.at..], Place::default(), known) {
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

    /// What begins here.
    fn next_tag(&self, text: &str) -> Read<Next> {
        match self.closing_tag(Cursor::new(text, self.at)) {
            Err(Halt::No) => {}
            read => return read.map(Next::Closed),
        }
        let mut cursor = Cursor::new(text, self.at);
        let name = match &self.tags {
            Tags::Xml => {
                cursor.literal("<param:")?;
                cursor.up_to('>')?
            }
            Tags::Function => {
                cursor.literal("<parameter")?;
                let name = assigned(&mut cursor)?;
                with_attributes(&mut cursor, name)?
            }
            Tags::Invoke(namespace) => {
                cursor.literal("<")?;
                cursor.literal(namespace)?;
                cursor.literal("parameter")?;
                let name = assigned(&mut cursor)?;
                with_attributes(&mut cursor, name)?
            }
        };
        let start = cursor.at();
        let opener = &text[self.at..start];
        let name = parameter_name(name).ok_or(Halt::No)?;
        if opener.ends_with("/>") {
            return Ok(Next::Empty(name.to_owned(), start));
        }
        let closer = match &self.tags {
            Tags::Xml => format!("</param:{name}>"),
            Tags::Function => "</parameter>".to_owned(),
            Tags::Invoke(namespace) => format!("</{namespace}parameter>"),
        };
        Ok(Next::Parameter(Open {
            name: name.to_owned(),
            start,
            opener: opener.to_owned(),
            closer,
        }))
    }

    /// Where the tag ends that closes the call.
    fn closing_tag(&self, mut cursor: Cursor<'_>) -> Read<usize> {
        match &self.tags {
            Tags::Xml => {
                cursor.literal("</tool:")?;
                cursor.literal(&self.name)?;
            }
            Tags::Function => cursor.literal("</function")?,
            Tags::Invoke(namespace) => {
                cursor.literal("</")?;
                cursor.literal(namespace)?;
                cursor.literal("invoke")?;
            }
        }
        cursor.blank()?;
        cursor.literal(">")?;
        Ok(cursor.at())
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
    let name = rest.bytes().take(MAX_NAMESPACE + 1).take_while(u8::is_ascii_alphanumeric).count();
    match rest.as_bytes().get(name) {
        Some(b':') if (1..=MAX_NAMESPACE).contains(&name) => {
            let namespace = &rest[..=name];
            cursor.literal(namespace)?;
            Ok(namespace)
        }
        None if name <= MAX_NAMESPACE => Err(Halt::More),
        _ => Ok(""),
    }
}

/// The name behind the word a tag begins with: `=name`, `="name"` or ` name="name"`.
fn assigned<'a>(cursor: &mut Cursor<'a>) -> Read<&'a str> {
    let word = *cursor;
    cursor.blank()?;
    if !cursor.optional("=")? {
        *cursor = word;
        cursor.gap()?;
        cursor.literal("name")?;
        cursor.blank()?;
        cursor.literal("=")?;
    }
    cursor.blank()?;
    match cursor.rest().starts_with(['"', '\'']) {
        true => cursor.quoted(),
        false => cursor.name(),
    }
}

/// The end of a tool's opening tag: its name, and whether the tag closes the call, too.
fn end_of_tag<'a>(cursor: &mut Cursor<'_>, name: &'a str) -> Read<(&'a str, bool)> {
    cursor.blank()?;
    let is_closed = cursor.optional("/")?;
    cursor.literal(">")?;
    let short = name.strip_suffix('/').filter(|short| !is_closed && !short.is_empty());
    Ok((short.unwrap_or(name), is_closed || short.is_some()))
}

/// The name in what stands in the tag of a parameter. It may hold blanks and slashes, but what
/// looks like an attribute is none of it.
fn parameter_name(written: &str) -> Option<&str> {
    let name = written.trim_end();
    let name = name.strip_suffix('/').unwrap_or(name).trim_end();
    let name = match name.contains(ATTRIBUTE) {
        true => name.split_ascii_whitespace().next()?,
        false => name,
    };
    Some(name).filter(|name| !name.is_empty() && !name.contains(ATTRIBUTE))
}

/// The end of a parameter's opening tag: some write the type of the value behind its name.
fn with_attributes<'a>(cursor: &mut Cursor<'_>, name: &'a str) -> Read<&'a str> {
    cursor.up_to('>')?;
    Ok(name)
}

/// What tags, of this call or of the next, begin with.
const MARKS: [char; 2] = ['<', '['];
const ATTRIBUTE: [char; 3] = ['=', '"', '\''];
/// Most bytes of a namespace; no more are held for it.
const MAX_NAMESPACE: usize = 32;
