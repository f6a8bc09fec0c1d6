//! The cases: a text, and what it holds.

use serde_json::json;
use toolloop_core::dialect::{Dialect, End, ToolLimit};

use super::reading::{Part, call, text, thought};

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) dialect: Dialect,
    pub(crate) limit: ToolLimit,
    pub(crate) end: End,
    pub(crate) text: String,
    pub(crate) parts: Vec<Part>,
}

impl Case {
    fn new(dialect: Dialect, name: &'static str, text: &str, parts: Vec<Part>) -> Self {
        let text = text.to_owned();
        Self { name, dialect, limit: ToolLimit::Unlimited, end: End::Proper, text, parts }
    }

    fn one(self) -> Self {
        Self { limit: ToolLimit::One, ..self }
    }

    fn ended(self, end: End) -> Self {
        Self { end, ..self }
    }

    /// Whether the model wrote what it was asked to write.
    pub(crate) fn is_well_formed(&self) -> bool {
        !self.name.starts_with("text: ")
    }
}

pub(crate) fn cases() -> Vec<Case> {
    [xml(), caret(), native(), thoughts()].into_iter().flatten().collect()
}

fn ls() -> Part {
    call("bash", json!({"command": "ls"}))
}

fn now() -> Part {
    call("now", json!({}))
}

fn xml() -> Vec<Case> {
    let case = |name, text, parts| Case::new(Dialect::Xml, name, text, parts);
    let first = "Let me look.\n\n<tool:bash>\n<param:command>ls</param:command>\n</tool:bash>";
    let looked = || vec![text("Let me look."), ls()];
    let limited = || vec![text("Let me look."), ls(), Part::LimitReached];
    vec![
        case("one tool", first, looked()).one(),
        case("one tool and an end of line", &format!("{first}\n"), looked()).one(),
        case("text behind a tool", &format!("{first}\n\nDone. "), {
            let mut parts = looked();
            parts.push(text("Done. "));
            parts
        })
        .one(),
        case("text in the line of a tool", "Now: <tool:now></tool:now> or later", {
            vec![text("Now: "), now(), text(" or later")]
        }),
        case("two tools", &format!("{first}\n<tool:now>\n</tool:now>"), {
            vec![text("Let me look."), ls(), now()]
        }),
        case("two tools, one allowed", &format!("{first}\n<tool:now>\n</tool:now>"), limited())
            .one(),
        case("text between two tools", &format!("{first}\nAnd:\n<tool:now>\n</tool:now>"), {
            vec![text("Let me look."), ls(), text("And:"), Part::LimitReached]
        })
        .one(),
        case("the second incomplete", &format!("{first}\n<tool:now>\n</to"), limited()).one(),
        case("text: the second incomplete, all allowed", &format!("{first}\n<tool:now>\n</to"), {
            vec![text("Let me look."), ls(), text("<tool:now>\n</to")]
        }),
        case("text: only the start of a second tag", &format!("{first}\n<tool:no"), {
            vec![text("Let me look."), ls(), text("<tool:no")]
        })
        .one(),
        case(
            "parameters belong to their tool",
            "<tool:bash>\n<param:command>a</param:command>\n<param:timeout>5</param:timeout>\n\
             </tool:bash>\n<tool:bash>\n<param:command>b</param:command>\n</tool:bash>",
            vec![
                call("bash", json!({"command": "a", "timeout": 5})),
                call("bash", json!({"command": "b"})),
            ],
        ),
        case(
            "repeats are a list",
            "<tool:read_files>\n<param:paths>a</param:paths>\n<param:paths>b c</param:paths>\n\
             </tool:read_files>",
            vec![call("read_files", json!({"paths": ["a", "b c"]}))],
        ),
        case(
            "the singular of a list",
            "<tool:read_files><param:path>a</param:path></tool:read_files>",
            vec![call("read_files", json!({"paths": ["a"]}))],
        ),
        case(
            "a value of several lines",
            "<tool:write_file>\n<param:path>a</param:path>\n<param:content>\n  if a < b {\n\n  }\n\
             \n</param:content>\n<param:append>TRUE</param:append>\n</tool:write_file>",
            vec![call(
                "write_file",
                json!({"path": "a", "content": "  if a < b {\n\n  }\n", "append": true}),
            )],
        ),
        case(
            "a value with markup",
            "<tool:write_file>\n<param:content><tool:bash><param:command>x</param:command>\
             </tool:bash> ```\n&lt;param:content>&lt;/param:content></param:content>\n</tool:write_file>",
            vec![call(
                "write_file",
                json!({"content": "<tool:bash><param:command>x\
             </param:command></tool:bash> ```\n<param:content></param:content>"}),
            )],
        ),
        case(
            "letters of all kinds",
            "Grüß dich 漢字 <tool:bash><param:command>echo 漢</param:command></tool:bash>ü",
            vec![text("Grüß dich 漢字 "), call("bash", json!({"command": "echo 漢"})), text("ü")],
        ),
        case(
            "a value that does not fit is for the schema",
            "<tool:bash><param:timeout>soon</param:timeout></tool:bash>",
            vec![call("bash", json!({"timeout": "soon"}))],
        ),
        case(
            "a tool that is not there",
            "<tool:fly>\n<param:to>a</param:to>\n</tool:fly>",
            vec![call("fly", json!({"to": "a"}))],
        ),
        case(
            "text that belongs to no parameter",
            "<tool:bash>ls <b></tool:bash>",
            vec![call("bash", json!("<tool:bash>ls <b></tool:bash>"))],
        ),
        case(
            "text: the first is not closed when the second starts",
            "<tool:bash>\n<param:command>ls</param:command>\n<tool:now>\n</tool:now>",
            vec![text("<tool:bash>\n<param:command>ls</param:command>"), now()],
        )
        .one(),
        case(
            "text: a parameter is not closed when the second starts",
            "a\n<tool:bash>\n<param:command>ls\n<tool:now></tool:now>",
            vec![text("a\n<tool:bash>\n<param:command>ls"), now()],
        )
        .one(),
        case(
            "text: a parameter is closed by that of the second",
            "<tool:bash><param:command>x\n<tool:bash><param:command>ls</param:command></tool:bash>\
             </tool:now>",
            vec![text("<tool:bash><param:command>x"), ls(), text("</tool:now>")],
        ),
        case(
            "text: no tool is closed",
            "<tool:bash>\n<param:command>ls</param:command>\n",
            vec![text("<tool:bash>\n<param:command>ls</param:command>\n")],
        ),
        case(
            "text: cut by the connection",
            "a\n<tool:bash>\n<param:command>ls",
            vec![text("a\n<tool:bash>\n<param:command>ls")],
        )
        .ended(End::Interrupted),
        case(
            "cut by the limit of tokens",
            "a\n<tool:bash>\n<param:command>ls",
            vec![text("a"), Part::Cut("bash".into(), "<tool:bash>\n<param:command>ls".into())],
        )
        .ended(End::Limit),
        case(
            "text: names that look like tags",
            "Write <tool>, <tool:>, < tool:bash>, <tool:a b>, <tool:NAME> or </tool:bash> <",
            vec![text(
                "Write <tool>, <tool:>, < tool:bash>, <tool:a b>, <tool:NAME> or </tool:bash> <",
            )],
        ),
        case(
            "text: tags in code",
            "See `<tool:bash>` and\n```xml\n<tool:now></tool:now>\n```\n~~~\n<tool:now></tool:now>\n",
            vec![text(
                "See `<tool:bash>` and\n```xml\n<tool:now></tool:now>\n```\n~~~\n\
                 <tool:now></tool:now>\n",
            )],
        ),
        case(
            "a tool behind code",
            "```\n<tool:bash>\n```\n\n<tool:now>\n</tool:now>",
            vec![text("```\n<tool:bash>\n```"), now()],
        ),
        case(
            "tools and parameters in one tag",
            {
                "<tool:now/>\n<tool:now />\n<tool:write_file><param:path/><param:content />\
             </tool:write_file>"
            },
            vec![now(), now(), call("write_file", json!({"path": "", "content": ""}))],
        ),
        case(
            "blanks in tags",
            "<tool:bash >\n<param:command >ls</param:command>\n</tool:bash\n>",
            vec![ls()],
        ),
        case(
            "text: tags in the code of a list and of a quotation",
            "1. - ```xml\n     <tool:now></tool:now>\n     ```\n> ```\n> <tool:now></tool:now>\n> \
             ```\n<tool:now></tool:now>",
            vec![
                text(
                    "1. - ```xml\n     <tool:now></tool:now>\n     ```\n> ```\n> \
                     <tool:now></tool:now>\n> ```",
                ),
                now(),
            ],
        ),
        case(
            "text: a namespace that is too long",
            &format!("<{0}:invoke name=\"now\"></{0}:invoke>", "a".repeat(33)),
            vec![text(&format!("<{0}:invoke name=\"now\"></{0}:invoke>", "a".repeat(33)))],
        ),
        case("text: white space", " \n\n  a \n\n\n b\n \n", vec![text(" \n\n  a \n\n\n b\n \n")]),
        case("only white space around", "\n\n<tool:now></tool:now>\n\n", vec![now()]),
        case("lines with carriage returns", "a\r\n<tool:now>\r\n</tool:now>\r\nb", {
            vec![text("a"), now(), text("b")]
        }),
    ]
}

fn caret() -> Vec<Case> {
    let case = |name, text, parts| Case::new(Dialect::Caret, name, text, parts);
    let first = "Let me look.\n\n^^^bash\ncommand: ls\n^^^";
    vec![
        case("one tool", first, vec![text("Let me look."), ls()]).one(),
        case("one tool and text", &format!("{first}\nDone."), {
            vec![text("Let me look."), ls(), text("Done.")]
        })
        .one(),
        case("two tools", &format!("{first}\n^^^now\n^^^\n"), {
            vec![text("Let me look."), ls(), now()]
        }),
        case("two tools, one allowed", &format!("{first}\n\n^^^now\n^^^\n"), {
            vec![text("Let me look."), ls(), Part::LimitReached]
        })
        .one(),
        case("the second incomplete", &format!("{first}\n^^^now\n"), {
            vec![text("Let me look."), ls(), Part::LimitReached]
        })
        .one(),
        case(
            "values of every kind",
            "^^^write_file\npath: src/a: b.rs\ncontent ---\n^^^now\n^^^\n\\--- content\n--- content \
             \nappend: true\n^^^ \n",
            vec![call(
                "write_file",
                json!({"path": "src/a: b.rs", "content": "^^^now\n^^^\n--- content", "append": true}),
            )],
        ),
        case(
            "lists in lines",
            "^^^read_files\npaths: [\n  a.txt\n\n  b c\n]\n^^^",
            vec![call("read_files", json!({"paths": ["a.txt", "b c"]}))],
        ),
        case(
            "lists in one line and repeated",
            "^^^read_files\npaths: [\"a\", \"]\"]\n^^^\n^^^read_files\npath: a\npath: b\n^^^",
            vec![
                call("read_files", json!({"paths": ["a", "]"]})),
                call("read_files", json!({"paths": ["a", "b"]})),
            ],
        ),
        case(
            "empty values",
            "^^^write_file\npath:\ncontent ---\n--- content\n^^^",
            vec![call("write_file", json!({"path": "", "content": ""}))],
        ),
        case(
            "text that belongs to no parameter",
            "^^^bash\nls -l\n^^^",
            vec![call("bash", json!("^^^bash\nls -l\n^^^"))],
        ),
        case("a tool that is not there", "^^^fly\nto: a\n^^^", {
            vec![call("fly", json!({"to": "a"}))]
        }),
        case(
            "text: the first is not closed when the second starts",
            "^^^bash\ncommand: ls\n^^^now\n^^^",
            vec![text("^^^bash\ncommand: ls"), now()],
        )
        .one(),
        case(
            "text: a value is not closed when the second starts",
            "^^^write_file\ncontent ---\nab\n^^^now\n^^^\n",
            vec![text("^^^write_file\ncontent ---\nab"), now()],
        ),
        case("text: no tool is closed", "^^^bash\ncommand: ls\n", {
            vec![text("^^^bash\ncommand: ls\n")]
        }),
        case("cut by the limit of tokens", "^^^bash\ncommand: l", {
            vec![Part::Cut("bash".into(), "^^^bash\ncommand: l".into())]
        })
        .ended(End::Limit),
        case("a form feed is a blank, too", "\u{c}\u{c}^^^now\n^^^", {
            vec![text("\u{c}\u{c}"), now()]
        }),
        case(
            "text: what looks like a tool",
            "x ^^^bash\n^^^\n^^ bash\n^^^a b\n`^^^`\n```\n^^^now\n^^^\n```\n^",
            vec![text("x ^^^bash\n^^^\n^^ bash\n^^^a b\n`^^^`\n```\n^^^now\n^^^\n```\n^")],
        ),
    ]
}

/// With native calls, those that leaked into the text.
fn native() -> Vec<Case> {
    let case = |name, text, parts| Case::new(Dialect::Native, name, text, parts);
    let leaked = || vec![text("Look:"), ls(), Part::Rescued];
    vec![
        case(
            "JSON in a tag",
            "Look:\n<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}\n\
             </tool_call>\n",
            leaked(),
        ),
        case(
            "JSON whose closing tag the server took",
            "Look:\n<tool_call>{\"name\": \"bash\", \"arguments\": \"{\\\"command\\\": \\\"ls\\\"}\"}",
            leaked(),
        ),
        case(
            "JSON in a tag, twice",
            "<tool_call>{\"name\":\"now\"}</tool_call>\n<tool_call>{\"name\":\"bash\",\
             \"arguments\":{\"command\":\"a } \\\" </tool_call> ]\"}}</tool_call>",
            vec![
                now(),
                Part::Rescued,
                call("bash", json!({"command": "a } \" </tool_call> ]"})),
                Part::Rescued,
            ],
        ),
        case(
            "a list of calls",
            "[TOOL_CALLS] [{\"name\": \"now\", \"arguments\": {}}, {\"name\": \"bash\", \
             \"arguments\": {\"command\": \"ls\"}}]",
            vec![now(), Part::Rescued, ls()],
        ),
        case(
            "a list of calls, one allowed",
            "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}}, {\"name\": \"now\"}]",
            vec![now(), Part::Rescued, Part::LimitReached],
        )
        .one(),
        case(
            "a function",
            "Look:\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>",
            leaked(),
        ),
        case(
            "a function in a tag",
            "Look:\n<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n\
             </tool_call>\nDone.",
            [leaked(), vec![text("Done.")]].concat(),
        ),
        case(
            "an invocation",
            "Look:\n<invoke name=\"bash\">\n<parameter name=\"command\">ls</parameter>\n</invoke>",
            leaked(),
        ),
        case(
            "invocations in a tag with a namespace",
            "Look:\n<ns:function_calls>\n<ns:invoke name=\"bash\">\n<ns:parameter name=\"command\" \
             string=\"true\">ls</ns:parameter>\n</ns:invoke>\n<ns:invoke name='now'>\n</ns:invoke>\n\
             </ns:function_calls>\n\nSo.",
            [leaked(), vec![now(), Part::Rescued, text("So.")]].concat(),
        ),
        case(
            "a second one, one allowed",
            "<function=now></function>\n<function=bash>\n<para",
            vec![now(), Part::Rescued, Part::LimitReached],
        )
        .one(),
        case(
            "blanks, quotes and empty tags",
            "Look:\n<function = \"bash\" >\n<parameter name='command' type=\"string\">ls</parameter>\n\
             </function >\n<invoke\n  name = 'now' />\n<function=now/>",
            [leaked(), vec![now(), Part::Rescued, now(), Part::Rescued]].concat(),
        ),
        case(
            "the literal of a Python program",
            "Look:\n<tool_call>{'name': 'bash', 'arguments': {'command': 'ls',}}</tool_call>",
            leaked(),
        ),
        case(
            "a list's names before the arguments",
            "Look:\n[TOOL_CALLS]bash[ARGS]{\"command\": \"ls\"}[TOOL_CALLS]now[CALL_ID]a1[ARGS]{}\
             [TOOL_CALLS]bash{\"command\": \"ls\"}",
            [leaked(), vec![now(), Part::Rescued, ls(), Part::Rescued]].concat(),
        ),
        case(
            "behind the tag of a program",
            "Look:\n<|python_tag|>{\"name\": \"bash\", \"parameters\": {\"command\": \"ls\"}}",
            leaked(),
        ),
        case(
            "a namespace in the name",
            "Look:\n<tool_call>{\"name\": \"functions.bash\", \"arguments\": {\"command\": \"ls\"}}\
             </tool_call><function=functions.now></function>",
            [leaked(), vec![now(), Part::Rescued]].concat(),
        ),
        case(
            "text: a thought at the beginning, and talk of one",
            "\n<think>\nMaybe <function=now></function>?\n</think>\n\nA <think> tag.",
            vec![thought("Maybe <function=now></function>?"), text("A <think> tag.")],
        ),
        case(
            "text: names that are not there before arguments",
            "[TOOL_CALLS]fly[ARGS]{} [TOOL_CALLS]bash x [TOOL_CALLS]bash[ARGS] <|python_tag|>x <|",
            vec![text(
                "[TOOL_CALLS]fly[ARGS]{} [TOOL_CALLS]bash x [TOOL_CALLS]bash[ARGS] <|python_tag|>x <|",
            )],
        ),
        case(
            "text: tools that are not there",
            "<tool_call>{\"name\": \"fly\"}</tool_call> <function=fly></function> \
             <invoke name=\"fly\"></invoke> [TOOL_CALLS][{\"name\": \"fly\"}]",
            vec![text(
                "<tool_call>{\"name\": \"fly\"}</tool_call> <function=fly></function> \
                 <invoke name=\"fly\"></invoke> [TOOL_CALLS][{\"name\": \"fly\"}]",
            )],
        ),
        case(
            "text: what is no JSON",
            "<tool_call>{\"name\": \"now\n\"}</tool_call> [TOOL_CALLS][{]} [TOOL_CALLS] x",
            vec![text(
                "<tool_call>{\"name\": \"now\n\"}</tool_call> [TOOL_CALLS][{]} [TOOL_CALLS] x",
            )],
        ),
        case(
            "text: the first is not closed when the second starts",
            "<tool_call>{\"name\": \"now\"}\n<tool_call>{\"name\": \"now\"}</tool_call>",
            vec![text("<tool_call>{\"name\": \"now\"}"), now(), Part::Rescued],
        ),
        case(
            "text: code, and the dialects nobody asked for",
            "`<function=now></function>` <tool:now></tool:now>\n^^^now\n^^^\n<think>a</think>",
            vec![text(
                "`<function=now></function>` <tool:now></tool:now>\n^^^now\n^^^\n<think>a</think>",
            )],
        ),
        case("text: cut by the limit of tokens", "<tool_call>{\"name\": \"now\"", {
            vec![text("<tool_call>{\"name\": \"now\"")]
        })
        .ended(End::Limit),
    ]
}

fn thoughts() -> Vec<Case> {
    let case = |name, text, parts| Case::new(Dialect::Xml, name, text, parts);
    vec![
        case(
            "a thought before the text",
            "<think>\nI should\nlook.\n\n</think>\n\nYes.",
            vec![thought("I should\nlook.\n"), text("Yes.")],
        ),
        case(
            "thoughts between text and tools",
            "Well.\n<thinking>a <tool:now></tool:now> </think> b</thinking>\n<tool:now></tool:now>\
             <think></think>.",
            vec![text("Well."), thought("a <tool:now></tool:now> </think> b"), now(), text(".")],
        ),
        case("text: a thought without end", "<think>\r\na\n</thin", vec![thought("a\n</thin")]),
        case("text: a thought in code", "`<think>` a", vec![text("`<think>` a")]),
    ]
}
