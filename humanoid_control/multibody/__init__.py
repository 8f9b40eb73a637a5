"""Ring 1: dynamics of trees and of small kinematic loops in O(n), and the kinematics of drives."""
