//! [`Renderer`]: one block of Markdown as lines for a terminal.

use std::iter::Peekable;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::markdown::OPTIONS;
use super::paint::{Paint, Style};
use super::table;
use super::text::{Span, wrap};

/// Renders blocks for a width.
#[derive(Debug, Clone, Copy)]
pub(super) struct Renderer {
    pub(super) columns: usize,
    pub(super) paint: Paint,
}

type Events<'a> = Peekable<Parser<'a>>;

impl Renderer {
    /// The lines of a top-level block, in units that stay as they are once the next has begun:
    /// the lines of code, the items of a list, else the whole block.
    pub(super) fn units(&self, source: &str) -> Vec<Vec<String>> {
        let mut events = Parser::new_ext(source, OPTIONS).peekable();
        match events.next() {
            Some(Event::Start(Tag::CodeBlock(_))) => {
                self.code(&mut events).into_iter().map(|line| vec![line]).collect()
            }
            Some(Event::Start(Tag::List(first))) => self.items(first, &mut events),
            Some(event) => vec![self.block(event, &mut events)],
            None => Vec::new(),
        }
    }

    /// A block whose first event has been taken.
    fn block(&self, first: Event<'_>, events: &mut Events<'_>) -> Vec<String> {
        match first {
            Event::Start(Tag::Heading { .. }) => self.inline(events, Style::BOLD),
            Event::Start(Tag::CodeBlock(_)) => self.code(events),
            Event::Start(Tag::List(number)) => self.items(number, events).concat(),
            Event::Start(Tag::BlockQuote(_)) => {
                let bar = self.paint.dim("│ ");
                let lines = self.narrower(2).blocks(events);
                lines.into_iter().map(|line| format!("{bar}{line}")).collect()
            }
            Event::Start(Tag::Table(alignments)) => {
                let rows = self.rows(events);
                table::layout(&rows, &alignments, self.columns, self.paint)
            }
            Event::Start(Tag::HtmlBlock) => self.inline(events, Style::DIM),
            Event::Start(_) => self.inline(events, Style::PLAIN),
            Event::Rule => vec![self.paint.dim(&"─".repeat(self.columns.min(40)))],
            _ => Vec::new(),
        }
    }

    /// The blocks up to the end of what contains them, an empty line between.
    fn blocks(&self, events: &mut Events<'_>) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let block = match events.peek() {
                None => break,
                Some(Event::End(_)) => {
                    events.next();
                    break;
                }
                Some(event) if is_inline(event) => self.inline_run(events, Style::PLAIN),
                Some(_) => match events.next() {
                    Some(event) => self.block(event, events),
                    None => break,
                },
            };
            if !lines.is_empty() && !block.is_empty() {
                lines.push(String::new());
            }
            lines.extend(block);
        }
        lines
    }

    fn items(&self, first: Option<u64>, events: &mut Events<'_>) -> Vec<Vec<String>> {
        let mut number = first;
        let mut items = Vec::new();
        while let Some(Event::Start(Tag::Item)) = events.next() {
            let marker = match &mut number {
                Some(number) => {
                    *number += 1;
                    format!("{}. ", *number - 1)
                }
                None => "• ".to_owned(),
            };
            let indent = marker.chars().count();
            let lines = self.narrower(indent).item(events);
            let hang = " ".repeat(indent);
            let with_marker = |(i, line): (usize, String)| match i {
                0 => format!("{marker}{line}"),
                _ if line.is_empty() => line,
                _ => format!("{hang}{line}"),
            };
            let lines = if lines.is_empty() { vec![String::new()] } else { lines };
            items.push(lines.into_iter().enumerate().map(with_marker).collect());
        }
        items
    }

    /// What is in an item. Its parts follow each other without empty lines, whether the list is
    /// tight or loose: a list becomes loose only by what comes later, when the first items have
    /// been printed.
    fn item(&self, events: &mut Events<'_>) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            match events.peek() {
                None => return lines,
                Some(Event::End(TagEnd::Item)) => {
                    events.next();
                    return lines;
                }
                Some(event) if is_inline(event) => {
                    lines.extend(self.inline_run(events, Style::PLAIN));
                }
                Some(_) => match events.next() {
                    Some(event) => lines.extend(self.block(event, events)),
                    None => return lines,
                },
            }
        }
    }

    /// Code is indented and never wrapped, so that it can be copied.
    fn code(&self, events: &mut Events<'_>) -> Vec<String> {
        let mut code = String::new();
        for event in events.by_ref() {
            match event {
                Event::Text(text) => code.push_str(&text),
                Event::End(_) => break,
                _ => {}
            }
        }
        let line = |line: &str| match line {
            "" => String::new(),
            line => format!("  {}", self.paint.apply(line, Style::CYAN)),
        };
        code.lines().map(line).collect()
    }

    fn rows(&self, events: &mut Events<'_>) -> Vec<Vec<Vec<Span>>> {
        let mut rows: Vec<Vec<Vec<Span>>> = Vec::new();
        while let Some(event) = events.next() {
            match event {
                Event::Start(Tag::TableHead | Tag::TableRow) => rows.push(Vec::new()),
                Event::Start(Tag::TableCell) => {
                    let style = if rows.len() == 1 { Style::BOLD } else { Style::PLAIN };
                    let cell = self.spans(events, style);
                    if let Some(row) = rows.last_mut() {
                        row.push(cell);
                    }
                }
                Event::End(TagEnd::Table) => break,
                _ => {}
            }
        }
        rows
    }

    /// Wrapped text up to the end of the block it is in.
    fn inline(&self, events: &mut Events<'_>, style: Style) -> Vec<String> {
        wrap(&self.spans(events, style), self.columns, self.paint)
    }

    /// Wrapped text that stands in an item or a quote without a paragraph around it.
    fn inline_run(&self, events: &mut Events<'_>, style: Style) -> Vec<String> {
        let mut spans = Vec::new();
        while events.peek().is_some_and(is_inline) {
            if let Some(event) = events.next() {
                self.span(event, events, style, &mut spans);
            }
        }
        wrap(&spans, self.columns, self.paint)
    }

    /// The spans up to an end, which is taken too.
    fn spans(&self, events: &mut Events<'_>, style: Style) -> Vec<Span> {
        let mut spans = Vec::new();
        while let Some(event) = events.next() {
            if let Event::End(_) = event {
                break;
            }
            self.span(event, events, style, &mut spans);
        }
        spans
    }

    fn span(&self, event: Event<'_>, events: &mut Events<'_>, style: Style, out: &mut Vec<Span>) {
        match event {
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                out.push(Span::new(text.into_string(), style));
            }
            Event::Code(code) => out.push(Span::new(code.into_string(), style.and(Style::CYAN))),
            Event::SoftBreak => out.push(Span::new(" ", style)),
            Event::HardBreak => out.push(Span::new("\n", style)),
            Event::TaskListMarker(done) => {
                out.push(Span::new(if done { "☑ " } else { "☐ " }, style));
            }
            Event::Start(Tag::Strong) => out.extend(self.spans(events, style.and(Style::BOLD))),
            Event::Start(Tag::Emphasis) => {
                out.extend(self.spans(events, style.and(Style::ITALIC)));
            }
            Event::Start(Tag::Strikethrough) => {
                out.extend(self.spans(events, style.and(Style::STRIKE)));
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                let text = self.spans(events, style.and(Style::UNDERLINE));
                let shown: String = text.iter().map(|span| span.text.as_str()).collect();
                out.extend(text);
                if shown != *dest_url && !dest_url.is_empty() {
                    out.push(Span::new(format!(" ({dest_url})"), style.and(Style::DIM)));
                }
            }
            Event::Start(_) => out.extend(self.spans(events, style)),
            _ => {}
        }
    }

    fn narrower(&self, by: usize) -> Self {
        Self { columns: self.columns.saturating_sub(by).max(1), ..*self }
    }
}

fn is_inline(event: &Event<'_>) -> bool {
    use Event::{Code, HardBreak, InlineHtml, InlineMath, SoftBreak, Start, TaskListMarker, Text};
    use Tag::{Emphasis, Image, Link, Strikethrough, Strong};
    matches!(
        event,
        Text(_)
            | Code(_)
            | SoftBreak
            | HardBreak
            | InlineHtml(_)
            | InlineMath(_)
            | TaskListMarker(_)
            | Start(Emphasis | Strong | Strikethrough | Link { .. } | Image { .. })
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(source: &str, columns: usize) -> Vec<String> {
        Renderer { columns, paint: Paint::new(false) }.units(source).concat()
    }

    #[test]
    fn items_hang_under_their_marker() {
        assert_eq!(
            render("9. one two three\n10. four\n\n    more\n    ```\n    x\n    ```\n", 12),
            ["9. one two", "   three", "10. four", "    more", "      x"]
        );
        assert_eq!(render("- [x] done\n- [ ] open\n-\n", 20), ["• ☑ done", "• ☐ open", "• "]);
    }

    #[test]
    fn a_quote_holds_blocks() {
        assert_eq!(render("> a\n>\n> - b\n> - c\n", 20), ["│ a", "│ ", "│ • b", "│ • c"]);
    }

    #[test]
    fn links_show_where_they_lead_once() {
        assert_eq!(render("<http://x.y> [t](http://u)", 40), ["http://x.y t (http://u)"]);
    }

    #[test]
    fn html_is_text() {
        assert_eq!(render("<b>\nx\n</b>\n", 40), ["<b>", "x", "</b>"]);
    }

    #[test]
    fn looks_are_nested() {
        let painted = Renderer { columns: 40, paint: Paint::new(true) }.units("**a *b***");
        assert_eq!(painted.concat(), ["\x1b[1ma \x1b[0m\x1b[1;3mb\x1b[0m"]);
    }
}
