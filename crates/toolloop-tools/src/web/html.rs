//! [`text_of`]: the text of an HTML page, in simple Markdown.
//!
//! One pass over the bytes, without a tree: what a page holds can make neither the stack nor the
//! time grow out of proportion. Where a page is broken, its text may look odd.

use reqwest::Url;

/// The text of a page: headings, lists, links and fixed text as in Markdown, scripts and styles
/// left out. Links are made whole with `base`.
pub(crate) fn text_of(html: &str, base: &Url) -> String {
    let mut page = Page { base, text: String::new(), link: None, is_fixed: false };
    let mut rest = html;
    while let Some(at) = memchr::memchr(b'<', rest.as_bytes()) {
        page.push(&rest[..at]);
        rest = &rest[at..];
        rest = match Markup::read(rest) {
            Some((markup, after)) => match markup {
                Markup::Open(name, _) if SKIPPED.contains(&name.as_str()) => {
                    behind_end(after, &name)
                }
                markup => {
                    page.markup(&markup);
                    after
                }
            },
            None if rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') => "",
            None => {
                page.push("<");
                &rest[1..]
            }
        };
    }
    page.push(rest);
    page.end_link();
    page.text.trim().to_owned() + "\n"
}

struct Page<'a> {
    base: &'a Url,
    text: String,
    /// Where the open link leads, and where its text begins.
    link: Option<(String, usize)>,
    /// Inside `pre`: white space stays.
    is_fixed: bool,
}

impl Page<'_> {
    fn push(&mut self, raw: &str) {
        let text = without_entities(raw);
        if self.is_fixed {
            self.text.push_str(&text);
            return;
        }
        for character in text.chars() {
            match character.is_whitespace() {
                false => self.text.push(character),
                true if self.text.ends_with([' ', '\n']) || self.text.is_empty() => {}
                true => self.text.push(' '),
            }
        }
    }

    fn markup(&mut self, markup: &Markup<'_>) {
        match markup {
            Markup::Open(name, tag) => match name.as_str() {
                "a" => self.begin_link(tag),
                "pre" => {
                    self.end_paragraph();
                    self.text.push_str("```\n");
                    self.is_fixed = true;
                }
                "li" => {
                    self.end_line();
                    self.text.push_str("- ");
                }
                "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                    self.end_paragraph();
                    let level = usize::from(name.as_bytes()[1] - b'0');
                    self.text.push_str(&"#".repeat(level));
                    self.text.push(' ');
                }
                "td" | "th" if !self.text.ends_with('\n') => self.text.push_str(" | "),
                name => self.boundary(name),
            },
            Markup::Close(name) => match name.as_str() {
                "a" => self.end_link(),
                "pre" if self.is_fixed => {
                    self.is_fixed = false;
                    self.end_line();
                    self.text.push_str("```\n\n");
                }
                name => self.boundary(name),
            },
            Markup::Nothing => {}
        }
    }

    fn boundary(&mut self, name: &str) {
        if PARAGRAPHS.contains(&name) {
            self.end_paragraph();
        } else if LINES.contains(&name) {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        let length = self.text.trim_end_matches(' ').len();
        self.text.truncate(length);
        // Its text begins no later than what is left of the page.
        if let Some((_, at)) = &mut self.link {
            *at = length.min(*at);
        }
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    fn end_paragraph(&mut self) {
        self.end_line();
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    fn begin_link(&mut self, tag: &str) {
        self.end_link();
        let target = attribute(tag, "href").map(without_entities);
        let Some(target) = target.filter(|target| !target.starts_with('#')) else { return };
        let target = self.base.join(&target).ok().filter(|url| url.scheme().starts_with("http"));
        if let Some(target) = target {
            self.link = Some((target.into(), self.text.len()));
        }
    }

    fn end_link(&mut self) {
        let Some((target, at)) = self.link.take() else { return };
        let said = self.text[at..].trim();
        if !said.is_empty() {
            let start = at + self.text[at..].len() - self.text[at..].trim_start().len();
            let end = start + said.len();
            self.text.insert_str(end, &format!("]({target})"));
            self.text.insert(start, '[');
        }
    }
}

enum Markup<'a> {
    /// Its name in small letters, and the whole tag.
    Open(String, &'a str),
    Close(String),
    /// Comments and declarations.
    Nothing,
}

impl<'a> Markup<'a> {
    /// Reads the markup that `text` begins with; what follows it. `None`: it begins with none, or
    /// with one that has no end.
    fn read(text: &'a str) -> Option<(Self, &'a str)> {
        if let Some(comment) = text.strip_prefix("<!--") {
            let end = memchr::memmem::find(comment.as_bytes(), b"-->");
            return Some((Self::Nothing, end.map_or("", |end| &comment[end + 3..])));
        }
        if text.starts_with("<!") || text.starts_with("<?") {
            let end = memchr::memchr(b'>', text.as_bytes());
            return Some((Self::Nothing, end.map_or("", |end| &text[end + 1..])));
        }
        let (is_end, inner) = match text.strip_prefix("</") {
            Some(inner) => (true, inner),
            None => (false, text.strip_prefix('<')?),
        };
        let length = inner.bytes().take_while(u8::is_ascii_alphanumeric).count();
        if length == 0 {
            return None;
        }
        let name = inner[..length].to_ascii_lowercase();
        let mut quote = None;
        let end = inner.bytes().enumerate().skip(length).find(|(_, byte)| match quote {
            Some(open) => {
                if *byte == open {
                    quote = None;
                }
                false
            }
            None => {
                if matches!(byte, b'"' | b'\'') {
                    quote = Some(*byte);
                }
                *byte == b'>'
            }
        });
        let (end, _) = end?;
        let (tag, after) = (&inner[length..end], &inner[end + 1..]);
        Some((if is_end { Self::Close(name) } else { Self::Open(name, tag) }, after))
    }
}

/// The value of an attribute in a tag.
fn attribute<'a>(tag: &'a str, wanted: &str) -> Option<&'a str> {
    let mut rest = tag;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        let length = rest.find(|c: char| c.is_ascii_whitespace() || c == '=').unwrap_or(rest.len());
        let (name, after) = rest.split_at(length);
        let after = after.trim_start();
        let (value, next) = match after.strip_prefix('=').map(str::trim_start) {
            None => ("", after),
            Some(value) => match value.chars().next() {
                Some(quote @ ('"' | '\'')) => {
                    value[1..].split_once(quote).unwrap_or((&value[1..], ""))
                }
                _ => value.split_at(value.find(char::is_whitespace).unwrap_or(value.len())),
            },
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        if next.is_empty() || next.len() == rest.len() {
            return None;
        }
        rest = next;
    }
}

/// What follows the end tag of an element whose content is no text.
fn behind_end<'a>(text: &'a str, name: &str) -> &'a str {
    let mut from = 0;
    while let Some(at) = memchr::memmem::find(&text.as_bytes()[from..], b"</") {
        let after = &text[from + at + 2..];
        let is_it = after.get(..name.len()).is_some_and(|end| end.eq_ignore_ascii_case(name));
        if is_it {
            return after.find('>').map_or("", |end| &after[end + 1..]);
        }
        from += at + 2;
    }
    ""
}

fn without_entities(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(MAX_ENTITY).position(|byte| byte == b';');
        let character = end.and_then(|end| entity(&rest[1..end]));
        let length = match (character, end) {
            (Some(character), Some(end)) => {
                plain.push(character);
                end + 1
            }
            _ => {
                plain.push('&');
                1
            }
        };
        rest = &rest[length..];
    }
    plain + rest
}

fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code).filter(|character| !character.is_control());
    }
    ENTITIES.iter().find(|(known, _)| *known == name).map(|(_, character)| *character)
}

/// Their content is no text.
const SKIPPED: [&str; 7] = ["script", "style", "svg", "template", "noscript", "iframe", "textarea"];
const PARAGRAPHS: [&str; 17] = [
    "p",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "dl",
    "table",
    "blockquote",
    "section",
    "article",
    "title",
    "hr",
    "figure",
];
const LINES: [&str; 16] = [
    "br",
    "div",
    "tr",
    "li",
    "dt",
    "dd",
    "header",
    "footer",
    "main",
    "nav",
    "aside",
    "form",
    "option",
    "figcaption",
    "body",
    "head",
];
/// Bytes of an entity with its `;`.
const MAX_ENTITY: usize = 12;
const ENTITIES: [(&str, char); 20] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", ' '),
    ("ndash", '–'),
    ("mdash", '—'),
    ("hellip", '…'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("laquo", '«'),
    ("raquo", '»'),
    ("bull", '•'),
    ("middot", '·'),
    ("copy", '©'),
    ("times", '×'),
    ("euro", '€'),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn text(html: &str) -> String {
        text_of(html, &Url::parse("https://a.test/docs/page").unwrap())
    }

    #[test]
    fn a_page_reads_like_a_text() {
        let page = r##"<!DOCTYPE html><html><head><title>A &amp; B</title>
<style>p { color: "red" }</style><script>if (1 < 2) { document.write("</p>") }</script></head>
<body><!-- <p>no</p> --><h2>Head
  line</h2><p>One <b>bold</b>&nbsp;word, 1 < 2 &unknown; &#8364;&#x41;.</p>
<ul><li>first</li><li>a <a href="../x?a=1&amp;b=2">link</a></li><li><a href='#top'>top</a></ul>
<pre>
fn  main() {}
</pre><table><tr><th>a<th>b</tr><tr><td>1</td><td>2</td></tr></table>
<a href="javascript:alert(1)">no</a><br><A HREF=/y title="a > b">yes</A></body></html>"##;
        let expected = "A & B\n\n## Head line\n\nOne bold word, 1 < 2 &unknown; €A.\n\n- first\n- a \
            [link](https://a.test/x?a=1&b=2)\n- top\n\n```\n\nfn  main() {}\n```\n\na | b\n1 | \
            2\n\nno\n[yes](https://a.test/y)\n";
        assert_eq!(text(page), expected);
    }

    #[test]
    fn broken_pages_end() {
        for (page, expected) in [
            ("a <b", "a\n"),
            ("a <b c=\"d", "a\n"),
            ("a <!-- b", "a\n"),
            ("a <script> b </scrip", "a\n"),
            ("a </ b", "a\n"),
            ("<a href=x>y", "[y](https://a.test/docs/x)\n"),
            ("<a href=x></a><a href>z</a>", "[z](https://a.test/docs/page)\n"),
            ("</pre></a></x>", "\n"),
            (
                "<pre>b          <a href=x></pre>aäää</a>",
                "```\nb\n[```\n\naäää](https://a.test/docs/x)\n",
            ),
            ("&#0;&#x110000;&", "&#0;&#x110000;&\n"),
            ("", "\n"),
        ] {
            assert_eq!(text(page), expected, "{page}");
        }
    }

    #[test]
    fn no_soup_of_tags_is_too_much() {
        let pieces = [
            "<a href=x>",
            "</a>",
            "<a href='ä",
            "<pre>",
            "</pre>",
            "<p>",
            "<br>",
            "<li>",
            "<td>",
            "<h1>",
            "          ",
            "ä",
            "€x",
            "\n",
            "&auml;",
            "&#228;",
            "&",
            ";",
            "<",
            ">",
            "\"",
            "'",
            "<!--",
            "-->",
            "<script>",
            "</script>",
            "=",
            "/",
            "\u{a0}",
        ];
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let page: String =
                (0..random.usize(..16)).filter_map(|_| random.choice(pieces)).collect();
            assert!(text(&page).ends_with('\n'), "{page}");
        }
    }

    #[test]
    fn hostile_pages_take_no_longer_than_others() {
        let started = std::time::Instant::now();
        for piece in ["<a ", "<a href=x>", "<", "&", "<!--", "<script>", "</", "<pre>", "\"<p '"] {
            text(&piece.repeat(400_000 / piece.len()));
        }
        assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
    }
}
