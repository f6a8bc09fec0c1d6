//! [`Markdown`]: renders Markdown while it arrives.
//!
//! A block is printed once, when the next one has begun; only the unfinished last block is
//! painted again and again. Of code and lists the finished lines and items are printed at once,
//! so that the part that is repainted stays small.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag};

use super::markdown_block::Renderer;
use super::paint::Paint;
use super::text::clean;

/// An answer while it arrives.
#[derive(Debug, Default)]
pub(crate) struct Markdown {
    /// What has come and is not printed as a whole; begins with the unfinished block.
    source: String,
    /// How many units of the unfinished block have been printed: lines of code, items of a list.
    printed_units: usize,
    /// Whether something was printed before: blocks are set apart by an empty line.
    begun: bool,
}

impl Markdown {
    /// Takes more of the text.
    pub(crate) fn push(&mut self, delta: &str) {
        self.source.push_str(&clean(delta));
    }

    /// Takes out those lines that cannot change any more, rendered for this width.
    pub(crate) fn settle(&mut self, columns: usize, paint: Paint) -> Vec<String> {
        let renderer = Renderer { columns, paint };
        // Only whole lines decide where a block ends: `#` may yet become `#5 is ...`.
        let whole = self.source.rfind('\n').map_or(0, |newline| newline + 1);
        let blocks = top_level_blocks(&self.source[..whole]);
        let mut settled = Vec::new();
        if let Some((last, done)) = blocks.split_last() {
            for range in done {
                self.print_block(range.clone(), &renderer, &mut settled);
            }
            self.print_settled_units(last.start..whole, &renderer, &mut settled);
            self.source.drain(..last.start);
        }
        settled
    }

    /// What is still open, to be shown until more comes.
    pub(crate) fn open(&self, columns: usize, paint: Paint) -> Vec<String> {
        let renderer = Renderer { columns, paint };
        let mut shadow = Self { source: String::new(), ..*self };
        let mut open = Vec::new();
        for range in top_level_blocks(&self.source) {
            shadow.print(&self.source[range], &renderer, &mut open);
        }
        open
    }

    /// Renders the rest; the text is complete.
    pub(crate) fn finish(&mut self, columns: usize, paint: Paint) -> Vec<String> {
        let renderer = Renderer { columns, paint };
        let mut finished = Vec::new();
        for range in top_level_blocks(&self.source) {
            self.print_block(range, &renderer, &mut finished);
        }
        self.source.clear();
        finished
    }

    fn print_block(&mut self, range: Range<usize>, renderer: &Renderer, out: &mut Vec<String>) {
        let block = self.source[range].to_owned();
        self.print(&block, renderer, out);
    }

    /// Prints what is left of a block that is complete.
    fn print(&mut self, block: &str, renderer: &Renderer, out: &mut Vec<String>) {
        let units = renderer.units(block);
        self.print_units(&units, units.len(), out);
        self.printed_units = 0;
    }

    /// Prints those units of an unfinished block that cannot change any more.
    fn print_settled_units(
        &mut self,
        range: Range<usize>,
        renderer: &Renderer,
        out: &mut Vec<String>,
    ) {
        let block = &self.source[range];
        let settled = match first_tag(block) {
            Some(Tag::CodeBlock(_)) => renderer.units(block).len(),
            Some(Tag::List(_)) => renderer.units(block).len().saturating_sub(1),
            _ => return,
        };
        let units = renderer.units(block);
        self.print_units(&units, settled, out);
        self.printed_units = self.printed_units.max(settled);
    }

    fn print_units(&mut self, units: &[Vec<String>], end: usize, out: &mut Vec<String>) {
        let new = units.get(self.printed_units..end).unwrap_or_default();
        if new.is_empty() {
            return;
        }
        if self.begun && self.printed_units == 0 {
            out.push(String::new());
        }
        self.begun = true;
        out.extend(new.iter().flatten().cloned());
    }
}

pub(super) const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// Where the blocks of the document are, nested ones not counted.
fn top_level_blocks(source: &str) -> Vec<Range<usize>> {
    let mut depth = 0;
    let mut blocks = Vec::new();
    for (event, range) in Parser::new_ext(source, OPTIONS).into_offset_iter() {
        match event {
            Event::Start(_) => {
                if depth == 0 {
                    blocks.push(range);
                }
                depth += 1;
            }
            Event::End(_) => depth -= 1,
            Event::Rule if depth == 0 => blocks.push(range),
            _ => {}
        }
    }
    blocks
}

fn first_tag(source: &str) -> Option<Tag<'_>> {
    Parser::new_ext(source, OPTIONS).find_map(|event| match event {
        Event::Start(tag) => Some(tag),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFF: Paint = Paint::new(false);

    fn whole(source: &str, columns: usize) -> String {
        let mut markdown = Markdown::default();
        markdown.push(source);
        markdown.finish(columns, OFF).join("\n")
    }

    /// All that is ever printed for good when the text comes in pieces of `size` bytes.
    fn in_pieces(source: &str, columns: usize, size: usize) -> String {
        let mut markdown = Markdown::default();
        let mut printed = Vec::new();
        let chars: Vec<char> = source.chars().collect();
        for piece in chars.chunks(size) {
            markdown.push(&piece.iter().collect::<String>());
            printed.extend(markdown.settle(columns, OFF));
        }
        printed.extend(markdown.finish(columns, OFF));
        printed.join("\n")
    }

    const SAMPLE: &str = "# Title\n\nA paragraph with `code`, **bold** and a \
        [link](http://x.y).\nSecond line.\n\n- one\n- two\n  - inner\n- three\n\n\
        1. first\n2. second\n\n```rust\nfn main() {\n\n    println!(\"# no heading\");\n}\n```\n\n\
        > quoted\n> more\n\n| a | b |\n|---|--:|\n| 1 | 22 |\n\n---\n\nEnd #5 is here\n#6 too\n";

    const SAMPLE_RENDERED: &str = "Title

A paragraph with code, bold and a link
(http://x.y). Second line.

• one
• two
  • inner
• three

1. first
2. second

  fn main() {

      println!(\"# no heading\");
  }

│ quoted more

a   b
─  ──
1  22

────────────────────────────────────────

End #5 is here #6 too";

    #[test]
    fn a_document_is_rendered_block_by_block() {
        assert_eq!(whole(SAMPLE, 40), SAMPLE_RENDERED);
    }

    #[test]
    fn pieces_of_any_size_print_the_same() {
        for size in [1, 2, 3, 5, 8, 13, 100] {
            assert_eq!(in_pieces(SAMPLE, 40, size), SAMPLE_RENDERED, "pieces of {size}");
        }
    }

    #[test]
    fn only_the_last_block_stays_open() {
        let mut markdown = Markdown::default();
        markdown.push("First.\n\nSecond, un");
        assert_eq!(markdown.settle(40, OFF), Vec::<String>::new());
        assert_eq!(markdown.open(40, OFF), ["First.", "", "Second, un"]);
        markdown.push("finished\n");
        assert_eq!(markdown.settle(40, OFF), ["First."]);
        assert_eq!(markdown.open(40, OFF), ["", "Second, unfinished"]);
    }

    #[test]
    fn lines_of_open_code_are_settled_at_once() {
        let mut markdown = Markdown::default();
        markdown.push("```\na\nb\nc");
        assert_eq!(markdown.settle(40, OFF), ["  a", "  b"]);
        assert_eq!(markdown.open(40, OFF), ["  c"]);
    }

    #[test]
    fn escape_sequences_of_a_model_do_not_come_through() {
        assert_eq!(whole("a\x1b[2Jb `\x1b]0;x\x07c`", 40), "ab c");
    }

    #[test]
    fn an_empty_answer_prints_nothing() {
        assert_eq!(whole("\n\n", 40), "");
    }
}
