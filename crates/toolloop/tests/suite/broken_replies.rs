//! Each fault at every event of a reply, through every API: what came is kept, the stream ends in
//! a typed error, and a reply that lacks anything is never taken for a whole one.

use serde_json::json;
use toolloop::LlmError;
use toolloop_fake::Fault;

use super::support::broken::{Api, said};

#[tokio::test]
async fn a_reply_that_is_cut_keeps_what_came() {
    for api in Api::all().await {
        let mut text = String::new();
        for came in api.with(|event| [Fault::CutAtEvent(event)]).await {
            assert!(came.text.starts_with(&text), "{}: {came:?}", api.name);
            text.clone_from(&came.text);
            match &came.end {
                // The connection was lost behind the end of the reply.
                Ok(whole) => assert_eq!(said(whole), said(&api.whole), "{}", api.name),
                Err(LlmError::StreamInterrupted { .. }) => {}
                Err(other) => panic!("{}: {other}", api.name),
            }
        }
        assert_eq!(text, "one two three", "{}", api.name);
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_an_error_at_once() {
    for api in Api::all().await {
        let broken = api.with(|event| [Fault::MalformedJsonAtEvent(event)]).await;
        let cut = api.with(|event| [Fault::CutAtEvent(event)]).await;
        for (came, cut) in broken.into_iter().zip(cut) {
            assert!(matches!(came.end, Err(LlmError::ResponseFormat { .. })), "{came:?}");
            assert_eq!(came.text, cut.text, "{}", api.name);
        }
    }
}

#[tokio::test]
async fn an_error_of_the_server_keeps_what_came_before() {
    let fault = |event| {
        let error = json!({"message": "Overloaded", "code": 529});
        [Fault::ErrorAtEvent { event, error }]
    };
    for api in Api::all().await {
        let refused = api.with(fault).await;
        let cut = api.with(|event| [Fault::CutAtEvent(event)]).await;
        for (came, cut) in refused.into_iter().zip(cut) {
            let error = came.end.expect_err(api.name);
            assert_eq!((error.status(), error.is_retryable()), (Some(529), true), "{error}");
            assert_eq!(came.text, cut.text, "{}", api.name);
        }
    }
}

/// Whatever shape it has, and whether the server goes on behind it or ends the stream.
#[tokio::test]
async fn an_error_in_any_shape_is_read() {
    for api in Api::all().await {
        let cut = api.with(|event| [Fault::CutAtEvent(event)]).await;
        for &(name, data, passes) in error_shapes(api.name) {
            let bytes = written(api.name, name, data);
            let error = |event| Fault::GarbageAtEvent { event, bytes: bytes.clone() };
            let amid = api.with(|event| [error(event)]).await;
            let last = api.with(|event| [error(event), Fault::EndAtEvent(event)]).await;
            for (came, cut) in amid.into_iter().zip(&cut).chain(last.into_iter().zip(&cut)) {
                let error = came.end.expect_err(data);
                let is_typed = matches!(error, LlmError::Http { .. } | LlmError::Provider { .. });
                assert!(is_typed && error.to_string().ends_with("Overloaded"), "{data}: {error}");
                assert_eq!(error.is_retryable(), passes, "{data}: {error}");
                assert_eq!(came.text, cut.text, "{data}");
            }
        }
    }
}

/// Some servers write the error as it is, in one line or several, and are gone.
#[tokio::test]
async fn an_error_that_is_no_event_is_read_as_well() {
    let error = json!({"error": {"message": "Overloaded", "code": 503}});
    for api in Api::all().await {
        let cut = api.with(|event| [Fault::CutAtEvent(event)]).await;
        let mut texts = vec![error.to_string(), format!("{error}\n")];
        if api.name != "ollama" {
            texts.push(format!("{error:#}"));
            texts.push(format!("{error:#}\n\n").replace('\n', "\r\n"));
        }
        for text in texts {
            let bytes = text.as_bytes();
            let written = |event| Fault::GarbageAtEvent { event, bytes: bytes.to_vec() };
            let ended = api.with(|event| [written(event), Fault::EndAtEvent(event)]).await;
            let lost = api.with(|event| [written(event), Fault::CutAtEvent(event)]).await;
            for (came, cut) in ended.into_iter().zip(&cut).chain(lost.into_iter().zip(&cut)) {
                assert_eq!(came.text, cut.text, "{}: {text}", api.name);
                match (came.end, &cut.end) {
                    // Behind the reason to finish, nothing can be missing.
                    (Ok(whole), Ok(_)) => assert_eq!(said(&whole), said(&api.whole)),
                    (Ok(_), Err(error)) => panic!("{}: a reply in place of {error}", api.name),
                    (Err(error), _) => {
                        assert_eq!(error.status(), Some(503), "{}: {error}", api.name);
                        assert!(error.is_retryable(), "{}: {error}", api.name);
                    }
                }
            }
        }
    }
}

/// A stray line is no event of such a stream; where lines are documents, it is a broken one.
#[tokio::test]
async fn garbage_between_events_hides_none() {
    let bytes = b"\0\x01 garbage \r\n\r\n";
    let fault = |event| [Fault::GarbageAtEvent { event, bytes: bytes.to_vec() }];
    for api in Api::all().await {
        for came in api.with(fault).await {
            match &came.end {
                Ok(whole) => assert_eq!(said(whole), said(&api.whole), "{}", api.name),
                Err(LlmError::ResponseFormat { .. }) => assert_eq!(api.name, "ollama"),
                Err(other) => panic!("{}: {other}", api.name),
            }
        }
    }
}

/// Bytes that are no text become the character that stands for such.
#[tokio::test]
async fn invalid_utf8_spoils_only_itself() {
    for api in Api::all().await {
        let spoilt = api.with(|event| [Fault::InvalidUtf8AtEvent(event)]).await;
        assert!(spoilt.iter().any(|came| came.text.contains('\u{fffd}')), "{}", api.name);
        for came in spoilt {
            assert_eq!(came.text.replace('\u{fffd}', ""), "one two three", "{}", api.name);
            let whole = came.end.expect(api.name);
            assert_eq!(whole.tool_calls(), api.whole.tool_calls(), "{}", api.name);
        }
    }
}

#[tokio::test]
async fn a_reply_without_its_end_is_not_whole() {
    for api in Api::all().await {
        let came = api.with(|_| [Fault::NoEndMarker]).await.swap_remove(0);
        assert_eq!(came.text, "one two three", "{}", api.name);
        match &came.end {
            // The reason to finish is the end; many servers send no mark behind it.
            Ok(whole) => {
                assert!(["chat", "anthropic", "aicore"].contains(&api.name), "{}", api.name);
                assert_eq!(said(whole), said(&api.whole), "{}", api.name);
            }
            Err(LlmError::StreamInterrupted { .. }) => {}
            Err(other) => panic!("{}: {other}", api.name),
        }
    }
}

/// Errors in the shapes that are seen of an API: the event's name or none, its data, and whether it
/// says that it will pass.
type Shapes = &'static [(&'static str, &'static str, bool)];

fn error_shapes(api: &str) -> Shapes {
    match api {
        "chat" => CHAT,
        "responses" => RESPONSES,
        "anthropic" | "aicore" => ANTHROPIC,
        "gemini" => GEMINI,
        "ollama" => OLLAMA,
        other => unreachable!("{other}"),
    }
}

fn written(api: &str, name: &str, data: &str) -> Vec<u8> {
    let event = match (api, name) {
        ("ollama", _) => format!("{data}\n"),
        (_, "") => format!("data: {data}\n\n"),
        (_, name) => format!("event: {name}\ndata: {data}\n\n"),
    };
    event.into_bytes()
}

const CHAT: Shapes = &[
    ("", r#"{"error":{"message":"Overloaded","type":"server_error","code":503}}"#, true),
    ("", r#"{"error":{"message":"Overloaded","type":"server_error"}}"#, true),
    ("", r#"{"error":"Overloaded"}"#, false),
    ("error", r#"{"message":"Overloaded","code":"unavailable"}"#, true),
    ("", r#"{"object":"error","message":"Overloaded","type":"Busy","code":503}"#, true),
    (
        "",
        r#"{"error":{"message":"Overloaded","code":502},"choices":[{"finish_reason":"error"}]}"#,
        true,
    ),
];

const RESPONSES: Shapes = &[
    (
        "response.failed",
        r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"Overloaded"}}}"#,
        true,
    ),
    (
        "error",
        r#"{"type":"error","code":"server_error","message":"Overloaded","param":null}"#,
        true,
    ),
    ("error", r#"{"type":"error","error":{"type":"server_error","message":"Overloaded"}}"#, true),
    ("", r#"{"error":{"message":"Overloaded","type":"server_error"}}"#, true),
    ("", r#"{"message":"Overloaded","code":"server_error"}"#, true),
];

const ANTHROPIC: Shapes = &[
    (
        "error",
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        true,
    ),
    ("error", r#"{"type":"overloaded_error","message":"Overloaded"}"#, true),
    ("", r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, true),
    ("", r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#, true),
    ("", r#"{"type":"overloaded_error","message":"Overloaded"}"#, true),
    ("", r#"{"message":"Overloaded"}"#, false),
];

const GEMINI: Shapes = &[
    ("", r#"{"error":{"code":503,"message":"Overloaded","status":"UNAVAILABLE"}}"#, true),
    ("", r#"{"code":503,"message":"Overloaded"}"#, true),
];

const OLLAMA: Shapes = &[
    ("", r#"{"error":"Overloaded"}"#, false),
    ("", r#"{"error":{"message":"Overloaded","code":503}}"#, true),
    ("", r#"{"message":"Overloaded","code":503}"#, true),
    ("", r#"{"detail":"Overloaded"}"#, false),
];
