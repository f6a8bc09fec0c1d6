//! [`Script`]: one answer, rendered once to the exact bytes of its HTTP response.

use std::io::Write as _;
use std::time::Duration;

use crate::spec::{Spec, token};

/// One rendered answer: what goes out in each socket write.
pub(crate) struct Script {
    pub(crate) writes: Vec<Write>,
    /// Pause between the writes.
    pub(crate) delay: Option<Duration>,
}

pub(crate) struct Write {
    pub(crate) data: Vec<u8>,
    /// Wait for `/ctl/release` after it.
    pub(crate) hold_after: bool,
}

impl Script {
    /// Answer `n` of a conversation with this model.
    pub(crate) fn render(model: &str, spec: Spec, n: u32) -> Self {
        let mut out = Renderer::new(spec);
        let with_calls = n < spec.iterations;
        let head = format!(
            "data: {{\"id\":\"chatcmpl-bench{n:04}\",\"object\":\"chat.completion.chunk\",\
             \"created\":1760000000,\"model\":\"{model}\",\"service_tier\":\"default\",\
             \"system_fingerprint\":\"fp_bench\",\"choices\":["
        );
        let chunk = |delta: &str, finish: &str| {
            format!(
                "{head}{{\"index\":0,\"delta\":{delta},\"logprobs\":null,\
                 \"finish_reason\":{finish}}}],\"usage\":null}}\n\n"
            )
        };
        out.event(&chunk("{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}", "null"));
        for i in 0..spec.text {
            out.event(&chunk(&format!("{{\"content\":\"{}\"}}", token(i)), "null"));
            if !with_calls && spec.hold == Some(i + 1) {
                out.flush(true);
            }
        }
        for k in 0..if with_calls { spec.calls } else { 0 } {
            out.event(&chunk(
                &format!(
                    "{{\"tool_calls\":[{{\"index\":{k},\"id\":\"call_{n}_{k}\",\"type\":\
                     \"function\",\"function\":{{\"name\":\"add\",\"arguments\":\"\"}}}}]}}"
                ),
                "null",
            ));
            for piece in arguments(n, k, spec.args) {
                let piece = piece.replace('\\', "\\\\").replace('"', "\\\"");
                out.event(&chunk(
                    &format!(
                        "{{\"tool_calls\":[{{\"index\":{k},\"function\":\
                         {{\"arguments\":\"{piece}\"}}}}]}}"
                    ),
                    "null",
                ));
            }
        }
        out.event(&chunk("{}", if with_calls { "\"tool_calls\"" } else { "\"stop\"" }));
        let (input, output) = (50 + n * 50, spec.output_tokens(with_calls));
        out.event(&format!(
            "{head}],\"usage\":{{\"prompt_tokens\":{input},\"completion_tokens\":{output},\
             \"total_tokens\":{},\"prompt_tokens_details\":{{\"cached_tokens\":0}},\
             \"completion_tokens_details\":{{\"reasoning_tokens\":0}}}}}}\n\n",
            input + output
        ));
        out.event("data: [DONE]\n\n");
        out.finish()
    }
}

struct Renderer {
    spec: Spec,
    writes: Vec<Write>,
    /// The next write, and how many events are in it.
    current: Vec<u8>,
    events: u32,
    /// Bytes not yet in a chunk, when the stream is torn.
    torn: Vec<u8>,
}

impl Renderer {
    fn new(spec: Spec) -> Self {
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
            cache-control: no-cache\r\nx-request-id: req_bench\r\ntransfer-encoding: chunked\r\n\r\n";
        Self { spec, writes: Vec::new(), current: head.to_vec(), events: 0, torn: Vec::new() }
    }

    /// Adds one SSE event as one HTTP chunk, as real servers send it, or torn.
    fn event(&mut self, sse: &str) {
        match self.spec.split {
            None => self.chunk(sse.as_bytes()),
            Some(size) => {
                self.torn.extend_from_slice(sse.as_bytes());
                let torn = std::mem::take(&mut self.torn);
                let mut pieces = torn.chunks_exact(size as usize);
                for piece in &mut pieces {
                    self.chunk(piece);
                }
                self.torn = pieces.remainder().to_vec();
            }
        }
        self.events += 1;
        if self.events >= self.spec.group {
            self.flush(false);
        }
    }

    fn chunk(&mut self, data: &[u8]) {
        write!(self.current, "{:x}\r\n", data.len()).expect("a Vec takes all");
        self.current.extend_from_slice(data);
        self.current.extend_from_slice(b"\r\n");
    }

    fn flush(&mut self, hold_after: bool) {
        self.events = 0;
        self.writes.push(Write { data: std::mem::take(&mut self.current), hold_after });
    }

    fn finish(mut self) -> Script {
        let torn = std::mem::take(&mut self.torn);
        if !torn.is_empty() {
            self.chunk(&torn);
        }
        self.current.extend_from_slice(b"0\r\n\r\n");
        self.flush(false);
        let delay_us = self.spec.delay_us;
        let delay = (delay_us > 0).then(|| Duration::from_micros(delay_us));
        Script { writes: self.writes, delay }
    }
}

/// The arguments of call `k` in answer `n`, cut into `fragments` pieces of about four bytes.
fn arguments(n: u32, k: u32, fragments: u32) -> Vec<String> {
    let mut json = format!("{{\"a\":{},\"b\":{}}}", n + 1, k + 1);
    let want = fragments as usize * 4;
    if want > json.len() + 11 {
        let padding = want - json.len() - 10;
        json.pop();
        json.push_str(",\"note\":\"");
        json.extend((0..padding).map(|i| (b'a' + (i % 26) as u8) as char));
        json.push_str("\"}");
    }
    let fragments = (fragments.max(1) as usize).min(json.len());
    (0..fragments)
        .map(|i| json[json.len() * i / fragments..json.len() * (i + 1) / fragments].to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body, its HTTP chunks joined, and the sizes of the chunks.
    fn body(model: &str) -> (Vec<u8>, Vec<usize>) {
        let script = Script::render("bench", Spec::parse(model).unwrap(), 0);
        let all: Vec<u8> = script.writes.iter().flat_map(|w| w.data.clone()).collect();
        let start = memchr::memmem::find(&all, b"\r\n\r\n").unwrap() + 4;
        let (mut rest, mut body, mut sizes) = (&all[start..], Vec::new(), Vec::new());
        loop {
            let line = memchr::memmem::find(rest, b"\r\n").unwrap();
            let size = std::str::from_utf8(&rest[..line]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            rest = &rest[line + 2..];
            if size == 0 {
                assert_eq!(rest, b"\r\n");
                return (body, sizes);
            }
            body.extend_from_slice(&rest[..size]);
            sizes.push(size);
            rest = &rest[size + 2..];
        }
    }

    #[test]
    fn a_torn_stream_has_the_same_bytes() {
        let (whole, events) = body("bench-i1-t40-c2-a8");
        let (torn, pieces) = body("bench-i1-t40-c2-a8-s7");
        assert_eq!(events.len(), 1 + 40 + 2 * 9 + 3);
        assert!(whole.ends_with(b"data: [DONE]\n\n"));
        assert_eq!(torn, whole);
        assert!(pieces[..pieces.len() - 1].iter().all(|size| *size == 7));
    }

    #[test]
    fn arguments_are_json_of_the_wanted_length() {
        let pieces = arguments(1, 2, 8);
        assert_eq!(pieces.len(), 8);
        assert_eq!(pieces.concat(), r#"{"a":2,"b":3,"note":"abcdefghi"}"#);
        assert_eq!(arguments(0, 0, 2).concat(), r#"{"a":1,"b":1}"#);
    }
}
