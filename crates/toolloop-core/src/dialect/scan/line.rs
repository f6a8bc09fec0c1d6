//! [`Line`]: whether text is code, in which a tag only shows what a tag looks like.

/// Where in its line, and in which code, a text is.
///
/// A fence is a line that begins with three or more `` ` `` or `~`, also as the first of a list's
/// element or of a quotation; it ends at a line of as many. Code inside a line ends at as many
/// `` ` `` as it began with, or at the end of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    /// Only blanks so far.
    is_start: bool,
    /// What stands before the content of the line.
    lead: Lead,
    /// The marks just read, and what stands before them in the line.
    marks: Option<(Marks, Lead)>,
    /// The code in this line that is open.
    span: Option<usize>,
    /// What the line opens or closes, if nothing in it speaks against that.
    turn: Option<Turn>,
    fence: Option<Marks>,
}

/// How far a line is one of a list or of a quotation, and nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lead {
    /// Blanks and `>`.
    Quote,
    /// And, behind them, `-` or `1.` and a blank.
    Element,
    Number,
    /// `-` or `1.`, before its blank.
    Marker,
    /// Its content has begun.
    Over,
}

impl Lead {
    fn behind(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Quote, b'>') => Self::Quote,
            (Self::Quote | Self::Element, b'-' | b'*' | b'+') => Self::Marker,
            (Self::Quote | Self::Element | Self::Number, b'0'..=b'9') => Self::Number,
            (Self::Number, b'.' | b')') => Self::Marker,
            (Self::Element, b'>') => Self::Element,
            _ => Self::Over,
        }
    }

    fn behind_blank(self) -> Self {
        match self {
            Self::Quote | Self::Over => self,
            Self::Marker | Self::Element => Self::Element,
            Self::Number => Self::Over,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Marks {
    mark: u8,
    count: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Opens(Marks),
    Closes,
}

impl Line {
    /// The beginning of a text.
    pub(super) fn first() -> Self {
        Self { is_start: true, lead: Lead::Quote, marks: None, span: None, turn: None, fence: None }
    }

    /// Behind a block.
    pub(super) fn behind_block() -> Self {
        Self { is_start: false, lead: Lead::Over, ..Self::first() }
    }

    pub(super) fn is_start(&self) -> bool {
        self.is_start && self.marks.is_none()
    }

    /// Whether what comes next is code.
    pub(super) fn is_code(&self) -> bool {
        let mut next = *self;
        next.end_marks();
        next.fence.is_some() || next.span.is_some() || matches!(next.turn, Some(Turn::Opens(_)))
    }

    /// Whether text without marks, tags and line ends changes nothing here but the start of a line.
    pub(super) fn is_plain(&self) -> bool {
        self.marks.is_none() && self.turn.is_none()
    }

    /// Text without marks, tags and line ends.
    pub(super) fn skip(&mut self, text: &str) {
        self.is_start &= text.trim_ascii_start().is_empty();
        let mut bytes = text.bytes();
        while self.lead != Lead::Over
            && let Some(byte) = bytes.next()
        {
            self.lead = match byte.is_ascii_whitespace() {
                true => self.lead.behind_blank(),
                false => self.lead.behind(byte),
            };
        }
    }

    pub(super) fn feed(&mut self, byte: u8) {
        match byte {
            b'`' | b'~' => {
                if let Some((marks, _)) = &mut self.marks
                    && marks.mark == byte
                {
                    marks.count += 1;
                    return;
                }
                self.end_marks();
                self.marks = Some((Marks { mark: byte, count: 1 }, self.lead));
                self.is_start = false;
                self.lead = Lead::Over;
            }
            b'\n' => {
                self.end_marks();
                match self.turn {
                    Some(Turn::Opens(marks)) => self.fence = Some(marks),
                    Some(Turn::Closes) => self.fence = None,
                    None => {}
                }
                *self = Self { fence: self.fence, ..Self::first() };
            }
            blank if blank.is_ascii_whitespace() => {
                self.end_marks();
                self.lead = self.lead.behind_blank();
            }
            _ => {
                self.end_marks();
                self.is_start = false;
                self.lead = self.lead.behind(byte);
                if self.turn == Some(Turn::Closes) {
                    self.turn = None;
                }
            }
        }
    }

    fn end_marks(&mut self) {
        let Some((marks, lead)) = self.marks.take() else { return };
        let Marks { mark, count } = marks;
        if let Some(fence) = self.fence {
            if lead == Lead::Quote && mark == fence.mark && count >= fence.count {
                self.turn = Some(Turn::Closes);
            }
            return;
        }
        if matches!(lead, Lead::Quote | Lead::Element) && count >= 3 {
            self.turn = Some(Turn::Opens(marks));
        } else if mark == b'`'
            && let Some(Turn::Opens(Marks { mark: b'`', count: opened })) = self.turn
        {
            // Behind marks that open a fence there are no others: it was code in the line.
            self.turn = None;
            self.span = (opened != count).then_some(opened);
        } else if mark == b'`' && self.turn.is_none() {
            self.span = match self.span {
                Some(open) if open == count => None,
                Some(open) => Some(open),
                None => Some(count),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the end of a text is code.
    fn ends_in_code(text: &str) -> bool {
        let mut line = Line::first();
        text.bytes().for_each(|byte| line.feed(byte));
        line.is_code()
    }

    #[test]
    fn fences_and_spans_are_code() {
        for code in [
            "```",
            "```xml\n",
            "```\na\n",
            "  ~~~~\n~~~\n",
            "a `",
            "a ``b` ",
            "```\n``` x\n",
            "~~~ a`b\n",
            "- ```xml\n  a\n",
            "> 12) * ~~~\n> a\n",
            "- ```\n- ```\n",
        ] {
            assert!(ends_in_code(code), "{code:?}");
        }
    }

    #[test]
    fn what_is_closed_is_no_code() {
        for text in [
            "",
            "a `b` ",
            "a `b\n",
            "```\na\n```\n",
            "```\na\n```` \n",
            "``` a ``` b",
            "``` a ```\n",
            "~~~ a`b\n~~~\n",
            "a ``` b\n",
            "a `b\nc",
            "~ `a` ",
            "- ```\n  a\n  ```\n",
            "> ```\n> a\n> ```\n",
            "-``` a\n",
            "12 ``` a\n",
        ] {
            assert!(!ends_in_code(text), "{text:?}");
        }
    }
}
