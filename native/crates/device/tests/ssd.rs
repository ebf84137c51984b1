//! The SSD as a timing model: contract, buffer, interference, endurance.

mod service;

use device::{Ssd, SsdParameters};

fn parameters() -> SsdParameters {
    serde_json::from_str(
        r#"{
            "channels": 4, "dies_per_channel": 2, "planes": 2, "page_kib": 16, "pages_per_block": 768,
            "read_us": 50, "program_us": 800, "erase_us": 4000, "variation_percent": 5,
            "channel_mb_s": 400, "interface_mb_s": 1000, "full_duplex": true,
            "command_us": 2, "read_overhead_us": 6, "write_overhead_us": 8, "queue_depth": 64,
            "write_buffer_kib": 4096, "power_loss_protection": true, "over_provisioning_percent": 14,
            "reads_ahead": 8
        }"#,
    )
    .unwrap()
}

#[test]
fn an_ssd_keeps_the_contract_of_services() {
    service::holds(|seed| {
        Box::new(Ssd::new(
            parameters(),
            service::BYTES,
            service::SECTOR_BYTES,
            seed,
        ))
    });
}

#[test]
fn an_ssd_without_power_loss_protection_keeps_it_too() {
    let parameters = SsdParameters {
        power_loss_protection: false,
        ..parameters()
    };
    service::holds(|seed| {
        Box::new(Ssd::new(
            parameters.clone(),
            service::BYTES,
            service::SECTOR_BYTES,
            seed,
        ))
    });
}
