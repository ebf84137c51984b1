//! Documents of schedulers and tenants.

use schedulers::{Parameters, Tenant};
use serde_json::{json, Value};

fn refused(document: Value) -> String {
    serde_json::from_value::<Parameters>(document)
        .unwrap_err()
        .to_string()
}

#[test]
fn what_is_not_given_has_its_default() {
    for kind in Parameters::KINDS {
        let given: Parameters = serde_json::from_value(json!({"kind": kind})).unwrap();
        assert_eq!(given, Parameters::of(kind).unwrap());
        assert_eq!(given.kind(), kind);
        // The document of the defaults reads as the defaults.
        let back: Parameters = serde_json::from_value(json!(given)).unwrap();
        assert_eq!(back, given);
    }
    let given: Parameters =
        serde_json::from_value(json!({"kind": "gimbal", "thresh_max_us": 2000})).unwrap();
    let Parameters::Gimbal(gimbal) = given else {
        panic!("a gimbal")
    };
    assert_eq!((gimbal.thresh_max_us, gimbal.virtual_slots), (2000.0, 8));
}

#[test]
fn an_unknown_name_comes_with_the_one_that_was_meant() {
    for (document, message) in [
        (
            json!({"kind": "gimbel"}),
            r#"unknown kind "gimbel" of scheduler; did you mean "gimbal"?"#,
        ),
        (
            json!({"kind": "wfq"}),
            r#"unknown kind "wfq" of scheduler; known: none, reflex, parda, flashfq, gimbal"#,
        ),
        (
            json!({"kind": "gimbal", "tresh_min_us": 1}),
            r#"unknown parameter "tresh_min_us" of scheduler gimbal; did you mean "thresh_min_us"?"#,
        ),
        (
            json!({"kind": "flashfq", "read_cost": {"base": 1}}),
            r#"unknown parameter "base" of scheduler flashfq; did you mean "base_us"?"#,
        ),
        (
            json!({"kind": "reflex", "curve": [{"p99_us": 1}]}),
            r#"unknown parameter "p99_us" of scheduler reflex; did you mean "p95_us"?"#,
        ),
        (
            json!({"kind": "none", "depth": 1}),
            r#"unknown parameter "depth" of scheduler none; it has none"#,
        ),
        (
            json!({"depth": 1}),
            r#"a scheduler needs a kind, as in {"kind": "gimbal"}"#,
        ),
        (json!({"kind": 7}), "kind 7 of scheduler is not a name"),
    ] {
        assert_eq!(refused(document), message);
    }
}

#[test]
fn a_value_outside_of_its_range_is_named() {
    for (document, message) in [
        (
            json!({"kind": "gimbal", "rate_min_mib_s": 0.0009}),
            "scheduler gimbal: rate_min_mib_s is 0.0009; give 0.001 to 1000000",
        ),
        (
            json!({"kind": "gimbal", "thresh_min_us": 1600}),
            "scheduler gimbal: thresh_min_us is 1600; give above 0 to 1500",
        ),
        (
            json!({"kind": "gimbal", "priority_quotas": [16, 4, 2, 0]}),
            "scheduler gimbal: priority_quotas is 0; give 1 to 65536",
        ),
        (
            json!({"kind": "parda", "beta": 0}),
            "scheduler parda: beta is 0; give above 0 to 10000",
        ),
        (
            json!({"kind": "flashfq", "depth": 0}),
            "scheduler flashfq: depth is 0; give 1 to 65536",
        ),
        (
            json!({"kind": "flashfq", "write_cost": {"base_us": 0, "per_kib_us": 0}}),
            "scheduler flashfq: write_cost is 0; give it a base_us or a per_kib_us",
        ),
        (
            json!({"kind": "reflex", "threads": 0}),
            "scheduler reflex: threads is 0; give 1 to 1024",
        ),
        (
            json!({"kind": "reflex", "curve": []}),
            "scheduler reflex: curve has no points; give at least one",
        ),
        (
            json!({"kind": "reflex", "curve": [{"p95_us": 500, "tokens_per_s": 0, "read_only_tokens_per_s": 1}]}),
            "scheduler reflex: curve[0].tokens_per_s is 0; give above 0 to 1000000000000",
        ),
    ] {
        assert_eq!(refused(document), message);
    }
    let text = refused(json!({"kind": "flashfq", "depth": "deep"}));
    assert!(
        text.starts_with("scheduler flashfq: invalid type: string \"deep\""),
        "{text}"
    );
}

#[test]
fn tenants_are_checked_as_they_are_read() {
    for (document, message) in [
        (
            json!({"name": "a", "wieght": 2}),
            r#"unknown parameter "wieght" of a tenant; did you mean "weight"?"#,
        ),
        (json!({"weight": 2}), "a tenant needs a name"),
        (json!({"name": ""}), "a tenant's name is empty"),
        (
            json!({"name": "a", "weight": -1}),
            r#"tenant "a": weight is -1; give 0.000001 to 1000000"#,
        ),
        (
            json!({"name": "a", "slo": {"iops": 0, "read_percent": 100, "p95_us": 500}}),
            r#"tenant "a": slo.iops is 0; give above 0 to 1000000000"#,
        ),
        (
            json!({"name": "a", "slo": {"iops": 1, "read_percent": 101, "p95_us": 500}}),
            r#"tenant "a": slo.read_percent is 101; give 0 to 100"#,
        ),
        (
            json!({"name": "a", "slo": {"iops": 1, "read_percent": 100, "p95_us": 0}}),
            r#"tenant "a": slo.p95_us is 0; give above 0 to 1000000000"#,
        ),
        (
            json!({"name": "a", "read_only": true, "slo": {"iops": 1, "read_percent": 50, "p95_us": 500}}),
            r#"tenant "a": read_only contradicts slo.read_percent 50; give 100"#,
        ),
    ] {
        let error = serde_json::from_value::<Tenant>(document).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}
