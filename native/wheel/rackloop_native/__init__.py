"""The directory ``bin`` beside this file holds drivesim, rackd and rackprobe; ``rackloop.native`` looks there."""
